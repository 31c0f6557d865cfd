"""Errors a user can cause, and the exit code that each one means.

Everything raised for a user's mistake derives from :class:`BreaklabError`; the command line prints
it as one message and a remedy, without a traceback. Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of every command means. Documented and stable."""

    OK = 0  # healthy run, proven break, green tests
    NEGATIVE = 1  # a negative verdict: tests red, a promise not met, a revert that conflicts
    USAGE = 2  # the command, a spec, the lab or the machine needs the user's attention first
    STALL = 3
    CRASH = 4
    WRONG = 5  # diverged, wrong or slow
    INTERNAL = 70  # a bug in breaklab; a log is written
    INTERRUPTED = 130


@dataclass(frozen=True)
class Location:
    """A place in a text file; line and column count from 1, 0 where unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Render as ``path:line:column``, the form that editors and terminals link."""
        parts = [self.path]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a spec, a manifest or a pattern, and what to do about it."""

    location: Location
    rule: str  # short stable id such as ``unknown-key`` or ``R4``
    message: str  # what was found and what is wanted
    hint: str = ""  # what to do

    def __str__(self) -> str:
        """Render on one line: place, message, rule."""
        return f"{self.location}: {self.message} [{self.rule}]"


class BreaklabError(Exception):
    """A mistake of the user's or a state of their machine; has a message and maybe a remedy.

    Args:
        message: what happened and where, one sentence or a short paragraph.
        hint: what to do about it, often a command.
        exit_code: what the process exits with.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str = "", exit_code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class SpecError(BreaklabError):
    """A spec or manifest that can't be used. Carries every finding, with file, line and column."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings), hint=findings[0].hint)
        self.findings = findings


class ProjectError(BreaklabError):
    """No project, lab, or break where one was expected."""


class SiteError(BreaklabError):
    """A pattern that matches no site, or more than one."""


class TreeError(BreaklabError):
    """The learner's tree is not in the state that a command needs; nothing was changed."""


class RunError(BreaklabError):
    """Ranks or tests could not be started at all (no torch, no interpreter, no permission)."""
