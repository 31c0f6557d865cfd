"""How candidates for breaks are shown: each result as it comes, then the groups and the holes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from breaklab.cli.render import Column, Screen
from breaklab.i18n import _, ngettext

if TYPE_CHECKING:
    from breaklab.inject.operators.candidates import Candidate
    from breaklab.prove.trial import Trial

Row = Mapping[str, Any]
_DIFF = {"+": "good", "-": "bad", "@": "quiet"}
_ORDER = ("no-import", "caught", "not-reached", "survived")
_MAX_NAMES = 3  # of red tests under a group


def place_of(file: str, line: int) -> str:
    """Return a place as editors understand it."""
    return f"{file}:{line}"


def row_of(candidate: Candidate, trial: Trial | None = None) -> dict[str, Any]:
    """Return a candidate, and what became of it, as JSON has it."""
    return {
        "key": candidate.key,
        "file": candidate.file,
        "line": candidate.line,
        "function": candidate.function,
        "operator": candidate.operator,
        "what": candidate.what,
        "fate": trial.fate.value if trial else None,
        "red": list(trial.red) if trial else [],
        "seconds": round(trial.seconds, 3) if trial else None,
        "diff": candidate.diff(),
    }


def report_of(lab: str, rows: Sequence[Row], *, interrupted: bool = False) -> dict[str, Any]:
    """Return the whole answer: rows by place, groups by red tests, counts by fate."""
    placed = sorted(rows, key=lambda row: (row["file"], row["line"]))
    members: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in placed:
        if row["fate"]:
            members.setdefault((row["fate"], tuple(sorted(row["red"]))), []).append(row["key"])
    groups = sorted(members.items(), key=lambda each: (_ORDER.index(each[0][0]), len(each[1])))
    return {
        "lab": lab,
        "candidates": placed,
        "groups": [{"fate": fate, "red": list(red), "keys": keys} for (fate, red), keys in groups],
        "counts": dict(Counter(row["fate"] for row in placed if row["fate"])),
        "interrupted": interrupted,
    }


def print_candidates(screen: Screen, candidates: Sequence[Candidate]) -> None:
    """Print candidates that were not tried, a line each."""
    columns = [Column(_("KEY")), Column(_("PLACE")), Column(_("OPERATOR")), Column(_("CHANGE"))]
    cells = [
        [each.key, place_of(each.file, each.line), each.operator, each.what] for each in candidates
    ]
    if cells:
        screen.table(columns, cells)
        screen.line()
    num = len(candidates)
    screen.prose(ngettext("{num} candidate", "{num} candidates", num).format(num=num))


def print_row(screen: Screen, row: Row) -> None:
    """Print what became of one candidate."""
    place = place_of(row["file"], row["line"])
    style = "warn" if row["fate"] in ("survived", "not-reached") else ""
    screen.line(f"{row['key']}  {_fate(row['fate'])}  {place}  {row['what']}", style)


def print_findings(screen: Screen, report: Mapping[str, Any], *, num_wanted: int) -> None:
    """Print the groups, then each candidate that no test noticed with its change, then counts."""
    by_key = {row["key"]: row for row in report["candidates"]}
    for group in report["groups"]:
        if group["fate"] == "caught":
            _print_group(screen, group, by_key)
    for fate, title in (
        ("not-reached", _("No test gets to these lines")),
        ("survived", _("All tests stay green")),
    ):
        holes = [row for row in report["candidates"] if row["fate"] == fate]
        if holes:
            screen.line()
            screen.heading(title)
        for row in holes:
            place = place_of(row["file"], row["line"])
            screen.line(f"  {row['key']}  {place}  {row['operator']}: {row['what']}")
            screen.listing(_change(row["diff"]), _DIFF)
    screen.line()
    if report["interrupted"]:
        tried = len(report["candidates"])
        text = _("Interrupted: {num} of {all} candidates were tried.")
        screen.prose(text.format(num=tried, all=num_wanted), "warn")
    screen.prose(_summary(report["counts"]))


def _print_group(screen: Screen, group: Row, by_key: Mapping[str, Row]) -> None:
    screen.line()
    for nodeid in group["red"][:_MAX_NAMES]:
        screen.line(nodeid, "strong")
    more = len(group["red"]) - _MAX_NAMES
    if more > 0:
        text = ngettext("and {num} more test", "and {num} more tests", more).format(num=more)
        screen.line(text, "strong")
    for key in group["keys"]:
        row = by_key[key]
        place = place_of(row["file"], row["line"])
        screen.line(f"  {key}  {place}  {row['operator']}: {row['what']}")


def _change(diff: str) -> str:
    """Return a diff without the names of its files."""
    lines = diff.split("\n")
    return "\n".join(line for line in lines if not line.startswith(("--- ", "+++ ")))


def _summary(counts: Mapping[str, int]) -> str:
    num = sum(counts.values())
    parts = [f"{counts[fate]} {_fate(fate)}" for fate in reversed(_ORDER) if counts.get(fate)]
    text = ngettext("{num} candidate", "{num} candidates", num).format(num=num)
    return f"{text}: {', '.join(parts)}" if parts else text


def _fate(fate: str) -> str:
    return {
        "no-import": _("does not import"),
        "caught": _("caught"),
        "not-reached": _("not reached"),
        "survived": _("survived"),
    }[fate]
