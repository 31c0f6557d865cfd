"""The warm parent's own process: imports a lab's heavy modules once, then forks each job.

It computes nothing and starts no thread: a child forked after a kernel has run hangs in its first
own kernel, because OpenMP's threads are not there any more. It serves until the socket to breaklab
closes; then it ends every job's processes and itself. Runs in any interpreter from 3.11 that has
the lab's modules; only the standard library is needed for the rest.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from breaklab.ranks import supervisor
from breaklab.ranks.process import adopt_orphans, kill_children, kill_descendants, kill_group
from breaklab.ranks.wire import ChildSignals, send_message


def num_threads() -> int | None:
    """Return the number of threads of this process; None where there is no /proc."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return None


class PreloadError(Exception):
    """A module that can't be preloaded: a code for breaklab, and the fields that it names."""

    def __init__(self, code: str, **fields: str) -> None:
        super().__init__(code, fields)
        self.code = code
        self.fields = fields


def preload(modules: tuple[str, ...]) -> None:
    """Import ``modules``, and what torch and pytest would import late in every child otherwise.

    Raises:
        PreloadError: a module is missing, fails, or started a thread.
    """
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise PreloadError("missing", module=name, missing=error.name or name) from error
        except (Exception, SystemExit) as error:
            raise PreloadError("failed", module=name, error=repr(error)) from error
        _check_threads(name)
    if "torch" in sys.modules:
        _build_one_optimizer()
        _check_threads("torch.optim")
    _import_pytest()
    _check_threads("pytest")


def _check_threads(module: str) -> None:
    if (num_threads() or 1) > 1:
        raise PreloadError("threads", module=module, threads=str(num_threads()))


def _build_one_optimizer() -> None:
    # The first optimizer of a process imports torch._dynamo and friends: a second for every rank.
    # An empty parameter allocates nothing and runs no kernel.
    import torch

    torch.optim.SGD([torch.nn.Parameter(torch.empty(0))], lr=0.0)


def _import_pytest() -> None:
    """Import pytest and its own plugins; a job for tests says when there is none."""
    with contextlib.suppress(ImportError):
        import pytest  # noqa: F401
        from _pytest.config import default_plugins

        for plugin in default_plugins:
            importlib.import_module(f"_pytest.{plugin}")


@dataclass
class _Job:
    """One job in progress. Keeping ``channel`` open tells breaklab that clean-up is not done."""

    pid: int
    channel: socket.socket
    lifeline: int
    folder: Path


class Host:
    """Forks a supervisor for each job that arrives, and ends its whole family afterwards."""

    def __init__(self, control: socket.socket, folder: Path) -> None:
        self._control = control
        self._folder = folder
        self._jobs: dict[int, _Job] = {}
        self._num_jobs = 0
        self._signals = ChildSignals(signal.SIGTERM)
        self._selector = selectors.PollSelector()  # no file descriptor that children would share
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(self._signals.reader, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve jobs until breaklab closes the socket, dies, or a SIGTERM comes."""
        try:
            while self._serve_once():
                pass
        finally:
            for job in self._jobs.values():
                kill_group(job.pid)
            kill_descendants(os.getpid())

    def _serve_once(self) -> bool:
        for key, _ in self._selector.select():
            if key.fileobj is self._control:
                if not self._accept():
                    return False
            elif key.fileobj is self._signals.reader:
                if signal.SIGTERM in self._signals.drain():
                    return False
                self._reap()
            elif key.data in self._jobs:
                self._end_family(self._jobs[key.data])
        return True

    def _accept(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, 1, 2)
        if not data:
            return False
        channel, lifeline = socket.socket(fileno=fds[0]), fds[1]
        self._num_jobs += 1
        folder = self._folder / f"job{self._num_jobs}"
        folder.mkdir()
        host_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(lifeline)
                self._leave()
                supervisor.main(channel, host_pid, folder)
            except BaseException:
                traceback.print_exc()  # to the log that breaklab quotes
            finally:
                os._exit(70)  # an error must not unwind into the host's own clean-up
        with contextlib.suppress(OSError):  # the child does the same; whoever comes first
            os.setpgid(pid, pid)
        self._jobs[pid] = _Job(pid, channel, lifeline, folder)
        self._selector.register(lifeline, selectors.EVENT_READ, pid)
        return True

    def _leave(self) -> None:
        """Close, in a forked supervisor, everything that belongs to the host or to other jobs."""
        self._signals.close()
        self._control.close()
        for job in self._jobs.values():
            job.channel.close()
            self._let_go(job)

    def _let_go(self, job: _Job) -> None:
        if job.lifeline >= 0:
            os.close(job.lifeline)
            job.lifeline = -1

    def _end_family(self, job: _Job) -> None:
        """Kill a job's processes: its group, and what left the group but still descends from it."""
        if job.lifeline >= 0:
            self._selector.unregister(job.lifeline)
            self._let_go(job)
        with contextlib.suppress(ProcessLookupError):
            os.kill(job.pid, signal.SIGSTOP)  # it must not start others while these end
        kill_descendants(job.pid)
        kill_group(job.pid)

    def _reap(self) -> None:
        """Clean up after ended supervisors, and end the orphans that they left to this process."""
        while (pid := _ended_child()) is not None:
            job = self._jobs.pop(pid, None)
            if job is not None:
                self._end_family(job)
            status = os.waitpid(pid, 0)[1]
            if job is not None:
                # Orphans of a live job belong to its supervisor, so these are of ended ones.
                kill_children(os.getpid(), spare=frozenset(self._jobs))
                self._report_end(job, os.waitstatus_to_exitcode(status))

    def _report_end(self, job: _Job, exit_code: int) -> None:
        shutil.rmtree(job.folder, ignore_errors=True)
        job.channel.setblocking(False)  # a breaklab that does not read must not hold up other jobs
        send_message(job.channel, "supervisor-ended", exit_code=exit_code)
        job.channel.close()


def _ended_child() -> int | None:
    """Return a child that has ended, and leave it a zombie: it keeps its pid and its group's."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended is not None else None


def main(control_fd: str, *modules: str) -> NoReturn:
    """Preload, report, serve, and leave; the only entry point, called by breaklab's bootstrap."""
    control = socket.socket(fileno=int(control_fd))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # breaklab decides what an interrupt ends
    adopt_orphans()
    try:
        preload(modules)
    except PreloadError as error:
        _answer(control, code=error.code, **error.fields)
        os._exit(0)
    folder = Path(tempfile.mkdtemp(prefix="breaklab-"))
    try:
        gc.collect()
        gc.freeze()  # children that share pages with us must not copy them to collect garbage
        _answer(control, code="ready", folder=str(folder), threads=num_threads())
        Host(control, folder).serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _answer(control: socket.socket, **fields: Any) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(fields).encode() + b"\n")
