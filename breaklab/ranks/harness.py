"""Run a function on every rank of a fresh gloo group, and say in one error what went wrong.

The engine behind the pytest fixture ``run_ranks``. Ranks are forked from the calling process: torch
is imported once, and a call takes milliseconds. That is safe only while the caller has one thread:
a rank forked after a parallel kernel hangs in its own first kernel. So the threads are counted at
every call, and where there are others a clean process starts the ranks instead (``spawn``), which
needs a function that can be imported; :func:`spawn_reason` says why.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from breaklab.i18n import _
from breaklab.ranks.harness_host import import_before_fork
from breaklab.ranks.harness_rank import leave, send_frame, take_frames
from breaklab.ranks.harness_report import RanksFailed, TeamReport, failure_of
from breaklab.ranks.harness_spawn import hand_over, reference
from breaklab.ranks.harness_supervisor import TeamJob, supervise
from breaklab.ranks.process import kill_group, reap

__all__ = ["RanksFailed", "run_ranks", "spawn_reason"]

_END_LIMIT_S = 5.0  # for a supervisor to end its ranks once its socket is closed
_reasons: list[str] = []  # why ranks are not forked from this process; at most one


def spawn_reason() -> str:
    """Why ranks are not forked from this process; empty while they are."""
    return _reasons[0] if _reasons else ""


def run_ranks(
    fn: Callable[..., Any],
    world_size: int = 3,
    timeout_s: float = 30.0,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    start: str = "auto",
    records: bool = True,
) -> list[Any]:
    """Call ``fn(*args, **kwargs)`` on each rank of a fresh gloo group.

    In each rank torch.distributed's default group is ready, torch uses one thread, every seed is 0,
    and RANK, WORLD_SIZE and LOCAL_RANK are set. What a rank prints is printed here, with its rank.

    Args:
        fn: what each rank does; must be importable if ranks are started by spawn.
        world_size: number of ranks, from 1.
        timeout_s: seconds for the slowest rank, from when all ranks have joined the group.
        args: positional arguments, the same on each rank.
        kwargs: keyword arguments, the same on each rank.
        start: ``auto``, or ``spawn`` to start ranks from a clean process in any case.
        records: record communication, so that a deadlock is proven, and told, at once.

    Returns:
        The value of each rank, by rank; values travel by pickle.

    Raises:
        RanksFailed: a rank raised, died, or did not return in time, or the ranks are deadlocked.
        TypeError: ranks are started by spawn, and ``fn`` or an argument can't be pickled.
    """
    __tracebackhide__ = True
    if world_size < 1:
        raise ValueError(f"world_size must be at least 1, not {world_size}")
    job = TeamJob(world_size, timeout_s, records)
    bound = partial(fn, *args, **(kwargs or {}))
    report = None
    if start == "auto" and not _reasons:
        report = _by_fork(job, bound)
    if report is None:
        report = _by_spawn(job, bound)
    if report.broken:
        raise RuntimeError(f"the harness failed:\n{report.broken}")
    failure = failure_of(report)
    if failure is not None:
        raise failure
    return [pickle.loads(rank.value or b"") for rank in report.ranks]


def num_threads() -> int:
    """Number of threads of this process; what Python knows of where there is no /proc."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return threading.active_count()


def _threads_reason() -> str:
    """Say which threads this process has beside its main one; empty if there are none.

    Only certain after a fork: OpenBLAS, which numpy loads, has threads until one, and ends them.
    """
    names = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    if names:
        return _("this process runs other threads: {names}").format(names=", ".join(names))
    if (threads := num_threads()) > 1:
        return _(
            "something in this process has started threads, as a parallel kernel does"
            " ({threads} threads)"
        ).format(threads=threads)
    return ""


def _by_fork(job: TeamJob, bound: partial[Any]) -> TeamReport | None:
    """Run the ranks below a fork of this process; None if it turns out to have other threads."""
    if "torch" not in sys.modules:
        _probe()  # so that a process that can't fork anyway need not import torch
        if reason := _threads_reason():
            _reasons.append(reason)
            return None
    import_before_fork()
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = socket.socketpair()
    with ours:
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: counted below
            pid = os.fork()
        if pid == 0:
            _become_supervisor(ours, theirs, job, bound, parent)
        theirs.close()
        try:
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            if reason := _threads_reason():
                _reasons.append(reason)
                return None
            ours.sendall(b"g")
            return _listen(ours)
        finally:
            ours.close()
            _end(pid)


def _end(supervisor: int) -> None:
    """Wait for a supervisor whose socket is closed to end its ranks; see that it did."""
    with contextlib.suppress(ChildProcessError):
        exit_code = reap(supervisor, _END_LIMIT_S)
        if exit_code != 0:
            kill_group(supervisor)
        if exit_code is None:
            os.waitpid(supervisor, 0)


def _probe() -> None:
    """Fork a child that does nothing, to see which threads are left after a fork."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _become_supervisor(
    ours: socket.socket, theirs: socket.socket, job: TeamJob, bound: partial[Any], parent: int
) -> None:
    """In the fork: wait until the parent has counted its threads, then supervise."""
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        ours.close()
        if theirs.recv(1):
            supervise(theirs, job, bound, parent=parent)
    finally:
        leave(1)


def _by_spawn(job: TeamJob, bound: partial[Any]) -> TeamReport:
    """Run the ranks below this process's clean host."""
    call = reference(bound, spawn_reason() or _("start='spawn' was given"))
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            hand_over(theirs)
        send_frame(ours.fileno(), b"j", pickle.dumps((job, call)))
        return _listen(ours)


def _listen(control: socket.socket) -> TeamReport:
    """Print what ranks print until the supervisor's report comes, and return that."""
    buffer = bytearray()
    rest: dict[int, str] = {}
    while True:
        data = control.recv(1 << 20)
        if not data:
            return TeamReport(ranks=[], broken="the supervisor of the ranks was killed")
        buffer += data
        for kind, payload in take_frames(buffer):
            if kind == b"o":
                rank, text = pickle.loads(payload)
                *lines, rest[rank] = (rest.get(rank, "") + text).split("\n")
                for line in lines:
                    print(f"[rank={rank}] {line}")
            else:
                for rank, line in sorted(rest.items()):
                    if line:
                        print(f"[rank={rank}] {line}")
                report = pickle.loads(payload)
                assert isinstance(report, TeamReport)
                return report
