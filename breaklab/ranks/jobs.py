"""What the warm parent can be asked to do, and what it answers: plain, picklable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from breaklab.ranks.history import History


@dataclass(frozen=True)
class TestJob:
    """Run pytest on a project, or on a scratch copy of one, in a fork of the warm parent."""

    __test__ = False  # pytest: not a test class

    root: Path  # pytest's rootdir and working directory; node ids are relative to it
    source: Path  # the lab's source, put first on sys.path
    targets: tuple[str, ...]  # files, folders or node ids, relative to root
    timeout_s: float
    pytest_args: tuple[str, ...] = ()
    trace_lines: bool = False  # report which lines of the source each test runs


class TestOutcome(StrEnum):
    """What became of one test."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"  # the test body failed
    ERROR = "error"  # set-up, tear-down or collection failed
    SKIPPED = "skipped"


@dataclass(frozen=True)
class TestResult:
    """One test of a :class:`TestReport`."""

    __test__ = False

    nodeid: str
    outcome: TestOutcome
    duration_s: float
    message: str = ""  # pytest's long representation when not passed
    reason: str = ""  # one line: the exception's own message


@dataclass(frozen=True)
class TestReport:
    """What a :class:`TestJob` came to."""

    __test__ = False

    results: tuple[TestResult, ...]
    exit_code: int  # pytest's, or negative: the signal that ended it
    timed_out: bool
    duration_s: float
    output: str  # what pytest printed, bounded
    origins: Mapping[str, str] = field(default_factory=dict)  # package in `source` -> __file__
    lines_run: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by node id: file:line

    @property
    def red(self) -> tuple[str, ...]:
        """Node ids that failed, in order."""
        bad = (TestOutcome.FAILED, TestOutcome.ERROR)
        return tuple(result.nodeid for result in self.results if result.outcome in bad)

    @property
    def green(self) -> bool:
        """Whether pytest ran at least one test and none failed."""
        return self.exit_code == 0 and not self.timed_out and bool(self.results) and not self.red


@dataclass(frozen=True)
class Fault:
    """A sick machine, played on one rank while it runs."""

    kind: str  # ``slow``, ``stop`` (SIGSTOP) or ``kill`` (SIGKILL)
    rank: int
    step: int | None = None  # for stop and kill: as soon as the rank has printed this step
    factor: float = 1.0  # for slow: how many times longer everything takes


@dataclass(frozen=True)
class RunJob:
    """Run a training entrypoint on every rank of a fresh process group."""

    cwd: Path
    source: Path  # put first on sys.path
    module: str = ""  # run as ``python -m module``, or ...
    script: str = ""  # ... as ``python script``
    args: tuple[str, ...] = ()
    num_ranks: int = 2
    hang_timeout_s: float = 60.0
    total_timeout_s: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    step_line: str = ""  # regular expression with a group `step`
    metrics_dir: Path | None = None  # where the entrypoint was told to write rank{rank}.jsonl
    faults: tuple[Fault, ...] = ()
    record: bool = True  # what ranks communicate, for proofs of a deadlock; costs a few percent
    history: bool = False  # and keep all of it for a timeline
    launcher: str = "fork"  # from the warm parent, or ``torchrun``: fresh processes, started by it


@dataclass(frozen=True)
class Line:
    """One line that a rank printed; ``seconds`` since the ranks started."""

    rank: int
    seconds: float
    text: str


@dataclass(frozen=True)
class RankEnd:
    """How one rank ended."""

    rank: int
    exit_code: int | None  # negative: killed by that signal; None: still alive when we stopped it
    seconds: float
    error: str = ""  # last line of its traceback, or the translated reason of a signal
    traceback: str = ""


@dataclass(frozen=True)
class RankWait:
    """Where one rank waits at a stall; empty strings where nothing is known."""

    rank: int
    operation: str = ""  # ``all_reduce``, ``recv``, ...
    sequence: int | None = None
    group: str = ""
    shape: str = ""
    dtype: str = ""
    peer: int | None = None
    place: str = ""  # ``file:line`` in the lab's source
    step: int | None = None


@dataclass(frozen=True)
class RunEvent:
    """Something that happened during a run, for a live display."""

    kind: str  # ``started`` (pids), ``ended`` (rank, exit_code), ``looked`` (waits, still_s)
    rank: int | None = None
    seconds: float = 0.0  # since the ranks started
    exit_code: int | None = None
    pids: tuple[int, ...] = ()  # by rank
    waits: tuple[RankWait, ...] = ()  # where ranks are now; no operation: it computes
    still_s: tuple[float, ...] = ()  # by rank: seconds since it printed or communicated


@dataclass(frozen=True)
class Stall:
    """No rank makes progress any more."""

    kind: str  # ``timed`` or ``proven``
    seconds: float  # without output (timed), or from the last movement to the proof (proven)
    reason: str = ""  # for a proof: why the waits can never be satisfied
    waits: tuple[RankWait, ...] = ()


@dataclass(frozen=True)
class RunReport:
    """Facts of one run; :func:`breaklab.ranks.outcome.judge` draws the conclusion."""

    ends: tuple[RankEnd, ...]
    lines: tuple[Line, ...]  # bounded: the first and the last ones
    duration_s: float
    stall: Stall | None = None
    over_time: bool = False  # total_timeout_s struck
    interrupted: bool = False
    last_step: int | None = None  # the highest step any rank reported
    metrics: Mapping[int, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)  # by rank
    lines_left_out: int = 0  # between the first and the last ones
    histories: tuple[History, ...] = ()  # by rank, if the job asked for them
