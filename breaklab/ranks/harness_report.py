"""What the ranks of one ``run_ranks`` call came to, and the one error that tells it.

The supervisor (:mod:`breaklab.ranks.harness_supervisor`) writes a :class:`TeamReport`; the pytest
process reads it and either takes the values or raises :class:`RanksFailed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from breaklab.i18n import _
from breaklab.ranks.ends import explain_end, is_peer_noise
from breaklab.ranks.jobs import RankEnd, RankWait, Stall
from breaklab.ranks.verdict import operation_text

# What torch and gloo say on a rank whose peer did not come: an effect, not a cause.
_LATE_PEER = (
    "Timed out waiting",
    "Application timeout caused pair closure",
    "Socket Timeout",
    "Wait timeout",
    "failed to connect",
    "Gloo connectFullMesh failed",
)
_OUTPUT_TAIL = 2000  # characters of a dead rank's output worth showing


@dataclass(frozen=True)
class Failure:
    """An exception that ended a rank's function."""

    error: str  # ``ValueError: bad batch``, its last line as Python prints it
    traceback: str
    lost_peer: bool  # an effect of another rank's end, see :func:`is_lost_peer`
    at: float  # ``time.monotonic()`` when it was caught


@dataclass
class RankReport:
    """How one rank ended; the supervisor fills it in as news arrives."""

    rank: int
    value: bytes | None = None  # pickled return value of the function
    failure: Failure | None = None
    exit_code: int | None = None  # negative: signal; None: alive when the supervisor ended it
    ended_at: float | None = None  # ``time.monotonic()``
    output: str = ""  # tail of what it wrote to stdout and stderr


@dataclass
class TeamReport:
    """How all ranks of one call ended."""

    ranks: list[RankReport]
    started_at: float = 0.0  # ``time.monotonic()`` when the function began
    stall: Stall | None = None
    broken: str = ""  # traceback of a bug in the harness itself


@dataclass(frozen=True)
class _Blame:
    """Which rank to name, and the words about it."""

    rank: int | None
    headline: str
    detail: str = ""
    others: str = field(default="")


class RanksFailed(Exception):
    """At least one rank did not return; the message names the one to look at.

    Attributes:
        rank: the rank that failed first for a reason of its own; None where no single rank did.
        ends: one :class:`~breaklab.ranks.jobs.RankEnd` for each rank.
        stall: where each rank waits, if the ranks were ended because they stood still.
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int | None = None,
        ends: tuple[RankEnd, ...] = (),
        stall: Stall | None = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.ends = ends
        self.stall = stall


def is_lost_peer(error: BaseException) -> bool:
    """Whether ``error``, or what it was raised from, only says that a peer is gone or late."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        text = str(current)
        if is_peer_noise(text) or any(late in text for late in _LATE_PEER):
            return True
        current = current.__cause__ or current.__context__
    return False


def failure_of(report: TeamReport) -> RanksFailed | None:
    """Return the error to raise for ``report``; None when every rank returned a value."""
    if report.stall is None and all(rank.value is not None for rank in report.ranks):
        return None
    blame = _blame(report)
    parts = [blame.headline]
    if blame.others:
        parts[0] += "\n" + blame.others
    if blame.detail:
        parts.append(blame.detail)
    ends = tuple(_end(rank, report.started_at) for rank in report.ranks)
    return RanksFailed("\n\n".join(parts), rank=blame.rank, ends=ends, stall=report.stall)


def _blame(report: TeamReport) -> _Blame:
    own = [rank for rank in report.ranks if _own_end(rank) is not None]
    if own:
        first = min(own, key=lambda rank: _own_end(rank) or 0.0)
        return _Blame(first.rank, _headline(first), _detail(first), _others(report, first))
    if report.stall is not None:
        return _blame_stall(report.stall)
    return _blame_lost(report)


def _own_end(rank: RankReport) -> float | None:
    """When ``rank`` failed for a reason of its own; None if it did not."""
    if rank.failure is not None:
        return None if rank.failure.lost_peer else rank.failure.at
    if rank.value is None and rank.exit_code is not None:
        return rank.ended_at
    return None


def _headline(rank: RankReport) -> str:
    code = rank.exit_code or 0
    if rank.failure is not None:
        error = rank.failure.error
    elif code < 0:
        error = explain_end(rank.rank, code, 0.0, rank.output.splitlines()).error
    else:
        error = _("left with exit code {code} and no value").format(code=code)
    return _("rank {rank} failed first: {error}").format(rank=rank.rank, error=error)


def _detail(rank: RankReport) -> str:
    if rank.failure is not None:
        return rank.failure.traceback.rstrip()
    if not rank.output.strip():
        return ""
    title = _("the last that rank {rank} wrote:").format(rank=rank.rank)
    # faulthandler ends its dump with every extension module: a page that helps nobody here.
    text = re.sub(r"^Extension modules: .*\n?", "", rank.output, flags=re.MULTILINE)
    return title + "\n" + text[-_OUTPUT_TAIL:].rstrip()


def _others(report: TeamReport, first: RankReport) -> str:
    """Say what became of the ranks that are not to blame, one line for each kind of end."""
    lost, later, ended = [], [], []
    for rank in report.ranks:
        if rank is first or rank.value is not None:
            continue
        if rank.failure is not None and rank.failure.lost_peer:
            lost.append(rank.rank)
        elif rank.exit_code is None:
            ended.append(rank.rank)
        else:
            later.append(rank.rank)
    lines = []
    if later:
        lines.append(_("failed after it: rank {ranks}").format(ranks=_listed(later)))
    if lost:
        lines.append(_("only lost a peer: rank {ranks}").format(ranks=_listed(lost)))
    if ended:
        lines.append(_("ended by the harness: rank {ranks}").format(ranks=_listed(ended)))
    return "\n".join(lines)


def _listed(ranks: list[int]) -> str:
    return ", ".join(str(rank) for rank in ranks)


def _blame_stall(stall: Stall) -> _Blame:
    if stall.kind == "proven":
        headline = _("deadlock, proven after {seconds:.1f} s: {reason}").format(
            seconds=stall.seconds, reason=stall.reason
        )
    else:
        headline = _("the ranks did not finish within {seconds:g} s").format(seconds=stall.seconds)
        if stall.reason:
            headline += _(" (no deadlock could be proven: {reason})").format(reason=stall.reason)
    return _Blame(None, headline, "\n".join(_wait_line(wait) for wait in stall.waits))


def _wait_line(wait: RankWait) -> str:
    what = operation_text(wait)
    shape = f" {wait.dtype}{wait.shape}" if wait.shape else ""
    peer = "" if wait.peer is None else _(" with rank {peer}").format(peer=wait.peer)
    group = "" if not wait.group else _(" in the group of ranks {group}").format(group=wait.group)
    place = "" if not wait.place else _(" at {place}").format(place=wait.place)
    return _("rank {rank}: ").format(rank=wait.rank) + what + shape + peer + group + place


def _blame_lost(report: TeamReport) -> _Blame:
    """Every failure is an effect: tell who waited in vain, and who had left by then."""
    failed = [rank for rank in report.ranks if rank.failure is not None]
    if not failed:
        return _Blame(None, _("the ranks were ended before they returned"))
    first = min(failed, key=lambda rank: rank.failure.at if rank.failure else 0.0)
    assert first.failure is not None
    returned = [rank.rank for rank in report.ranks if rank.value is not None]
    headline = _("rank {rank} waited for a peer in vain: {error}").format(
        rank=first.rank, error=first.failure.error
    )
    others = ""
    if returned:
        others = _("returned by then, without the communication it waited for: rank {ranks}")
        others = others.format(ranks=_listed(returned))
    return _Blame(first.rank if not returned else None, headline, _detail(first), others)


def _end(rank: RankReport, started_at: float) -> RankEnd:
    return RankEnd(
        rank=rank.rank,
        exit_code=rank.exit_code,
        seconds=max(0.0, (rank.ended_at or started_at) - started_at),
        error=rank.failure.error if rank.failure else "",
        traceback=rank.failure.traceback if rank.failure else "",
    )
