"""Ranks that torchrun starts: fresh processes, as on a cluster, watched like forked ones.

The supervisor forks an agent that runs torchrun's own main; torchrun starts each rank as a process
of its own that takes its output pipes from the supervisor, reports its pid, and then does what a
forked rank does. Linux only, because the pipes are passed by way of /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from breaklab.ranks import rank as rank_module
from breaklab.ranks.environment import common_environment
from breaklab.ranks.faults import SlowDown
from breaklab.ranks.jobs import RunJob
from breaklab.ranks.process import die_with_parent, reap
from breaklab.ranks.records import Board
from breaklab.ranks.startup import bootstrap_command
from breaklab.ranks.wire import ChildSignals, Messages, send_message

_JOB_FILE = "job.pickle"


def run(job: RunJob, channel: socket.socket, fds: list[int], folder: Path) -> None:
    """Let torchrun run the ranks of ``job``; report to breaklab as for forked ranks.

    Args:
        job: what to run.
        channel: to breaklab.
        fds: stdout and stderr of rank 0, of rank 1, ...; last, the board's, if there is one.
        folder: a private folder for the job and torchrun's logs.
    """
    reports, reports_in = os.pipe()
    (folder / _JOB_FILE).write_bytes(pickle.dumps((job, os.getpid(), fds, reports_in)))
    parent_pid = os.getpid()
    signals = ChildSignals()
    agent = os.fork()
    if agent == 0:
        try:
            die_with_parent(parent_pid)
            signals.close()
            channel.close()
            _be_torchrun(job, folder, reports_in)
        finally:
            os._exit(70)
    _Reports(job, channel, reports).follow(agent, signals)


class _Reports:
    """What ranks and torchrun report, passed on to breaklab."""

    def __init__(self, job: RunJob, channel: socket.socket, reports: int) -> None:
        self._job = job
        self._channel = channel
        self._reports = reports
        self._messages = Messages()
        self._pids: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._slow_down = SlowDown((), {})

    def follow(self, agent: int, signals: ChildSignals) -> None:
        """Return when torchrun has ended, and all that was reported is passed on."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._reports, selectors.EVENT_READ)
            selector.register(signals.reader, selectors.EVENT_READ)
            running = True
            while running:
                ready = [key.fileobj for key, _ in selector.select(self._slow_down.turn())]
                if signals.reader in ready:
                    signals.drain()
                    running = reap(agent, 0.0) is None
                if self._reports in ready:
                    self._read()
        with contextlib.suppress(BlockingIOError):
            os.set_blocking(self._reports, False)
            while True:
                self._read()
        if self._ended and len(self._pids) < self._job.num_ranks:
            # One failed before others had come to report: a run, though a short one.
            self._send_started()
            for rank, exit_code in self._ended.items():
                self._send_ended(rank, exit_code)

    def _read(self) -> None:
        for message in self._messages.feed(os.read(self._reports, 65_536)):
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        match message["kind"]:
            case "rank-started":
                self._pids[message["rank"]] = message["pid"]
                if len(self._pids) == self._job.num_ranks:
                    self._send_started()
            case "rank-ended":
                self._end(message["rank"], message["exit_code"])

    def _send_started(self) -> None:
        pids = [self._pids.get(rank, 0) for rank in range(self._job.num_ranks)]
        send_message(self._channel, "started", at=time.monotonic(), pids=pids)
        self._slow_down = SlowDown(self._job.faults, self._pids)

    def _end(self, rank: int, exit_code: int) -> None:
        if rank in self._ended:
            return
        self._ended[rank] = exit_code
        self._slow_down.forget(self._pids.get(rank, 0))
        self._send_ended(rank, exit_code)

    def _send_ended(self, rank: int, exit_code: int) -> None:
        send_message(self._channel, "ended", rank=rank, exit_code=exit_code, at=time.monotonic())


def _be_torchrun(job: RunJob, folder: Path, reports: int) -> NoReturn:
    """Run torchrun in this process; report the ranks that it saw fail, and that it has ended."""
    from torch.distributed import run as torch_run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.update(common_environment(job))
    arguments = [
        "--standalone",
        f"--nproc-per-node={job.num_ranks}",
        f"--log-dir={folder / 'logs'}",
        "--no-python",
        *bootstrap_command(sys.executable, "torchrun:rank_main", str(folder)),
    ]
    try:
        torch_run.run(torch_run.parse_args(arguments))
    except ChildFailedError as error:
        # The first one is the cause; torchrun then ends the others with SIGTERM.
        first, cause = error.get_first_failure()
        _report(reports, "rank-ended", rank=first, exit_code=cause.exitcode)
        for rank, failure in error.failures.items():
            if failure.exitcode != -signal.SIGTERM:
                _report(reports, "rank-ended", rank=rank, exit_code=failure.exitcode)
    os._exit(0)


def rank_main(folder: str) -> NoReturn:
    """Be one rank; called in a process that torchrun started."""
    job, supervisor_pid, fds, reports_fd = pickle.loads((Path(folder) / _JOB_FILE).read_bytes())
    rank = int(os.environ["RANK"])
    reports = _open_of(supervisor_pid, reports_fd)
    for fd, number in zip(fds[2 * rank : 2 * rank + 2], (1, 2), strict=True):
        ours = _open_of(supervisor_pid, fd)
        os.dup2(ours, number)
        os.close(ours)
    _report(reports, "rank-started", rank=rank, pid=os.getpid())

    def before_exit(exit_code: int) -> None:
        _report(reports, "rank-ended", rank=rank, exit_code=exit_code)

    page = None
    if job.record:
        page = Board.at(f"/proc/{supervisor_pid}/fd/{fds[-1]}", job.num_ranks).page(rank)
    rank_module.main(job, rank, {}, page, before_exit=before_exit)


def _open_of(pid: int, fd: int) -> int:
    """Open the writing end of a pipe that another process has as ``fd``."""
    return os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY | os.O_CLOEXEC)


def _report(fd: int, kind: str, **fields: Any) -> None:
    os.write(fd, json.dumps({"kind": kind, **fields}).encode() + b"\n")  # short: written at once
