"""The warm parent, seen from breaklab: start it, give it jobs from any thread, end it all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, NoReturn, Self

from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.ranks import process
from breaklab.ranks.environment import host_environment
from breaklab.ranks.jobs import Line, RunEvent, RunJob, RunReport, TestJob, TestReport, TestResult
from breaklab.ranks.link import JobLink, open_job, shared_memory
from breaklab.ranks.records import Board
from breaklab.ranks.startup import host_command, read_answer, start_error
from breaklab.ranks.testing import collect_tests
from breaklab.ranks.watch import watch_run
from breaklab.ranks.wire import MARKER

MAX_RANKS = 64
_END_LIMIT_S = 10.0


class WarmParent:
    """A process that has imported a lab's heavy modules and forks tests and runs from itself.

    Entering starts it and does not wait; the first job does. Leaving ends every process that
    descends from it, also when breaklab itself is killed.

    Args:
        python: the interpreter; ``""`` for the one that runs breaklab.
        preload: modules to import once; never the lab's own.
        env: environment variables on top of breaklab's own.
    """

    def __init__(
        self, python: str, preload: tuple[str, ...], *, env: Mapping[str, str] | None = None
    ) -> None:
        self._python = python or sys.executable
        self._preload = preload
        self._env = dict(env or {})
        self._token = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._log: IO[bytes] | None = None
        self._folder: Path | None = None
        self._ready = False
        self._start_error: RunError | None = None

    def __enter__(self) -> Self:
        """Start the process.

        Raises:
            RunError: there is no such interpreter, or it can't be run.
        """
        self._control, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()
        command = host_command(self._python, theirs.fileno(), self._preload)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=host_environment({**self._env, MARKER: self._token}),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            raise RunError(
                _("The interpreter {python} can't be started: {reason}.").format(
                    python=self._python, reason=error.strerror
                ),
                hint=_("Set `python` in lab.yaml to an interpreter, or remove it to use ours."),
            ) from error
        finally:
            theirs.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process that descends from the warm parent."""
        self.close()

    @property
    def pid(self) -> int | None:
        """The warm parent's process id while it lives."""
        return self._process.pid if self._process is not None else None

    def folder(self) -> Path:
        """Return a folder that ends with the warm parent, also when breaklab is killed.

        Waits until the warm parent is ready. For scratch copies.

        Raises:
            RunError: the warm parent could not start.
        """
        with self._lock:
            self._wait_ready()
        assert self._folder is not None
        return self._folder

    def run_tests(
        self, job: TestJob, on_result: Callable[[TestResult], None] | None = None
    ) -> TestReport:
        """Run pytest in a fork; ``on_result`` sees each test as it ends.

        Raises:
            RunError: it could not be started, or the warm parent died.
            KeyboardInterrupt: on Ctrl-C, with the tests' processes gone.
        """
        with contextlib.closing(self._open(job, num_outputs=1)) as link:
            report = collect_tests(job, link, on_result)
        return report or self._fail()

    def run_ranks(
        self,
        job: RunJob,
        on_line: Callable[[Line], None] | None = None,
        on_event: Callable[[RunEvent], None] | None = None,
    ) -> RunReport:
        """Run every rank of ``job`` and watch them to their end, a stall or a limit.

        Ctrl-C ends the ranks and gives a report with ``interrupted`` set. A callback that raises
        ends them too.

        Raises:
            RunError: they could not be started, or the warm parent died.
        """
        if not 1 <= job.num_ranks <= MAX_RANKS:
            raise RunError(
                _("{num_ranks} ranks can't run on one machine.").format(num_ranks=job.num_ranks),
                hint=_("Choose between 1 and {limit}.").format(limit=MAX_RANKS),
            )
        with contextlib.ExitStack() as stack:
            fds = []
            board = None
            if job.record:
                fds = [shared_memory()]
                stack.callback(os.close, fds[0])
                board = Board.at(f"/dev/fd/{fds[0]}", job.num_ranks)
            link = self._open(job, num_outputs=2 * job.num_ranks, fds=fds)
            stack.enter_context(contextlib.closing(link))
            report = watch_run(job, link, board, on_line, on_event)
        return report or self._fail()

    def close(self) -> None:
        """End everything; safe to call twice and from another thread than a job's."""
        with self._lock:
            host, self._process = self._process, None
            if self._control is not None:
                self._control.close()
                self._control = None
        if host is not None:
            if not self._ready:
                host.kill()  # it may be importing for seconds, and has started nothing
            try:
                host.wait(_END_LIMIT_S)
            except subprocess.TimeoutExpired:
                host.kill()
                host.wait()
            finally:
                self._sweep()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _sweep(self) -> None:
        """Kill what the warm parent could not because it was killed itself; remove its folder."""
        for _attempt in range(100):
            left = process.marked(MARKER, self._token)
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self, job: RunJob | TestJob, num_outputs: int, fds: Sequence[int] = ()) -> JobLink:
        """Hand ``job`` to a new supervisor, with pipes for its output and with ``fds``."""
        try:
            return open_job(job, num_outputs, fds, self._pass_on)
        except OSError:
            self._fail()

    def _pass_on(self, fds: Sequence[int]) -> None:
        """Send the descriptors of a new job's channel and lifeline to the warm parent."""
        with self._lock:
            socket.send_fds(self._wait_ready(), [b"J"], fds)

    def _wait_ready(self) -> socket.socket:
        control = self._control
        if control is None:
            raise RunError(_("The warm parent is closed."))
        if self._start_error is not None:
            raise self._start_error
        if not self._ready:
            answer = read_answer(control)
            if answer.get("code") != "ready":
                self._start_error = start_error(answer, self._python, self._log_tail())
                raise self._start_error
            self._folder = Path(answer["folder"])
            self._ready = True
        return control

    def _fail(self) -> NoReturn:
        """Raise the error that says why a job could not be served."""
        host = self._process
        if host is None:
            raise RunError(_("The run was ended because breaklab is closing."))
        with contextlib.suppress(subprocess.TimeoutExpired):
            host.wait(0.5)  # its sockets close a moment before it can be waited for
        if host.returncode is not None:
            self._sweep()
            message = _("The process that starts the ranks ended unexpectedly.")
        else:
            message = _("The ranks could not be started.")
        tail = self._log_tail()
        if tail:
            message += " " + _("It said: {text}").format(text=tail)
        raise RunError(message, hint=_("Run the command again; if it stays so, please report it."))

    def _log_tail(self) -> str:
        """Return the last line that the warm parent printed."""
        if self._log is None:
            return ""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 4000))
        lines = self._log.read().decode("utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""
