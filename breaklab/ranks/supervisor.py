"""The process that owns one job: leader of the job's process group, parent of its ranks.

Forked from the warm parent. For a test job it is pytest itself; for a run it forks the ranks,
hosts their rendezvous store and reports how each ended. What outlives a rank (a process that the
rank forked, whatever group or session it moved to) is adopted here and killed at the end.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
import traceback
from pathlib import Path
from typing import NoReturn

from breaklab.ranks import rank as rank_module
from breaklab.ranks import suite, torchrun
from breaklab.ranks.environment import rank_environment
from breaklab.ranks.faults import SlowDown
from breaklab.ranks.jobs import RunJob, TestJob
from breaklab.ranks.process import adopt_orphans, die_with_parent, kill_descendants
from breaklab.ranks.records import Board
from breaklab.ranks.source import imported_before
from breaklab.ranks.wire import ChildSignals, receive_job, send_message

_BACKLOG = 256  # connections of all ranks may arrive before the store is up


def main(channel: socket.socket, host_pid: int, folder: Path) -> NoReturn:
    """Do the one job that arrives on ``channel``; called in a fresh fork, never returns.

    Args:
        channel: to breaklab; what is sent is described at :class:`~breaklab.ranks.wire.Messages`.
        host_pid: the warm parent, with which this process dies.
        folder: a folder for this job's temporary files; the warm parent removes it.
    """
    os.setpgid(0, 0)
    die_with_parent(host_pid)
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        job, fds = receive_job(channel)
    except (EOFError, OSError):
        os._exit(0)  # breaklab went away before it said what to do
    code = 70
    try:
        imported = imported_before(job.source)
        if imported:
            send_message(channel, "refused", modules=imported)
        elif isinstance(job, TestJob):
            code = suite.run_pytest(job, channel, fds[0], folder)
        else:
            if job.launcher == "torchrun":
                torchrun.run(job, channel, fds, folder)
            else:
                _Ranks(job, channel, fds).run()
            code = 0
    except BaseException:
        traceback.print_exc()  # to the log that breaklab quotes
    finally:
        kill_descendants(os.getpid())
        os._exit(code)


class _Ranks:
    """The ranks of one :class:`RunJob`, and the store at which they meet."""

    def __init__(self, job: RunJob, channel: socket.socket, fds: list[int]) -> None:
        self._job = job
        self._channel = channel
        self._fds = fds  # stdout and stderr of rank 0, of rank 1, ...; last, the board's
        self._board = Board.at(f"/dev/fd/{fds[-1]}", job.num_ranks) if job.record else None
        self._rank_of: dict[int, int] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._store: object = None
        self._slow_down = SlowDown((), {})

    def run(self) -> None:
        """Fork the ranks, serve their store, report each end; return when all have ended."""
        signals = ChildSignals()
        started = time.monotonic()
        for rank in range(self._job.num_ranks):
            self._rank_of[self._fork(rank, signals)] = rank
        for fd in self._fds:
            os.close(fd)
        send_message(self._channel, "started", at=started, pids=list(self._rank_of))
        pid_of = {rank: pid for pid, rank in self._rank_of.items()}
        self._slow_down = SlowDown(self._job.faults, pid_of)
        with selectors.DefaultSelector() as selector:
            selector.register(signals.reader, selectors.EVENT_READ)
            selector.register(self._listener, selectors.EVENT_READ)
            while self._rank_of:
                for key, _ in selector.select(self._slow_down.turn()):
                    if key.fileobj is self._listener:
                        selector.unregister(self._listener)
                        self._host_store()
                    else:
                        signals.drain()
                        self._report_ends()

    def _fork(self, rank: int, signals: ChildSignals) -> int:
        port = self._listener.getsockname()[1]
        parent_pid = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            die_with_parent(parent_pid)
            signals.close()
            self._listener.close()
            self._channel.close()
            out, err = self._fds[2 * rank : 2 * rank + 2]
            os.dup2(out, 1)
            os.dup2(err, 2)
            for fd in self._fds:
                os.close(fd)
            page = self._board.page(rank) if self._board else None
            rank_module.main(self._job, rank, rank_environment(self._job, rank, port), page)
        finally:
            os._exit(70)

    def _host_store(self) -> None:
        """Start the TCPStore when the first rank knocks, so that a run without torch needs none.

        The socket listened before the ranks were forked: no port can be taken in between, and no
        rank can come too early.
        """
        from torch.distributed import TCPStore

        self._store = TCPStore(
            "127.0.0.1",
            self._listener.getsockname()[1],
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=self._listener.detach(),
        )

    def _report_ends(self) -> None:
        while self._rank_of:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._slow_down.forget(pid)
            rank = self._rank_of.pop(pid, None)  # None: an orphan that a rank left
            if rank is not None:
                code = os.waitstatus_to_exitcode(status)
                send_message(self._channel, "ended", rank=rank, exit_code=code, at=time.monotonic())
