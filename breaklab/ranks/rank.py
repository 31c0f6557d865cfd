"""What a forked rank does: become an ordinary Python process that runs the entrypoint."""

from __future__ import annotations

import atexit
import contextlib
import os
import runpy
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from breaklab.ranks.faults import strike_at_step
from breaklab.ranks.jobs import RunJob
from breaklab.ranks.recording import record_into
from breaklab.ranks.records import Page
from breaklab.ranks.source import run_from

_OURS = (__file__, runpy.__file__, "<frozen runpy>")


def main(
    job: RunJob,
    rank: int,
    environment: Mapping[str, str],
    page: Page | None,
    *,
    before_exit: Callable[[int], None] | None = None,
) -> NoReturn:
    """Run the entrypoint of ``job`` as ``__main__`` and end as an interpreter would.

    Expects file descriptors 1 and 2 to be this rank's own pipes. What it communicates is recorded
    in ``page``. ``before_exit`` gets the exit code of an end that is no signal.
    """
    os.environ.update(environment)
    _open_output()
    strike_at_step(sys.stdout, job.faults, rank, job.step_line)
    _reseed()
    if page is not None:
        record_into(page)
    code = 1
    try:
        os.chdir(job.cwd)
        code = _run(job)
        threading._shutdown()  # type: ignore[attr-defined]  # joins the script's own threads
        atexit._run_exitfuncs()
    except BaseException as error:
        code = _report(error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if before_exit is not None:
            before_exit(code)
        os._exit(code)


def _open_output() -> None:
    """Give this rank text streams of its own on its pipes, each line sent as soon as it ends."""
    sys.stdout = sys.__stdout__ = open(  # type: ignore[misc]  # noqa: SIM115
        1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]  # noqa: SIM115
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def _reseed() -> None:
    """Give numpy's generator fresh entropy, as a new process has; ``random`` does so itself."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _run(job: RunJob) -> int:
    run_from(job.source)
    try:
        if job.module:
            sys.argv = [job.module, *job.args]
            runpy.run_module(job.module, run_name="__main__", alter_sys=True)
        else:
            path = str(job.cwd / job.script)
            sys.argv = [path, *job.args]
            if Path(path).parent != job.source:
                sys.path.insert(1, str(Path(path).parent))
            runpy.run_path(path, run_name="__main__")
    except SystemExit as stop:
        return _exit_code(stop.code)
    except BaseException as error:
        return _report(error)
    return 0


def _exit_code(code: object) -> int:
    """Return the exit code for ``sys.exit(code)``; a text goes to stderr and means 1."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> int:
    """Print a traceback that begins in the script, and return the exit code."""
    frames = error.__traceback__
    while frames is not None and _is_ours(frames):
        frames = frames.tb_next
    # torch's hook reads the exception's own traceback, others the argument.
    sys.excepthook(type(error), error.with_traceback(frames), frames)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _is_ours(frames: TracebackType) -> bool:
    return frames.tb_frame.f_code.co_filename in _OURS
