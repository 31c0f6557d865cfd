"""How proofs are printed: each verdict as it comes, then a table and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from breaklab.cli.lookup import label
from breaklab.cli.render import Column, Screen
from breaklab.i18n import _, ngettext

Row = Mapping[str, Any]  # an entry of a report's `proofs`


def print_proof(screen: Screen, row: Row) -> None:
    """Print the verdict on one break, and below it what was not kept or is waived."""
    word = _("proven") if row["proven"] else _("NOT PROVEN")
    text = _("{name}  {word}  {checks} checks in {seconds:.1f} s").format(
        name=label(row["bug_id"]), word=word, checks=len(row["checks"]), seconds=row["seconds"]
    )
    screen.line(text, "good" if row["proven"] else "bad")
    for check in row["checks"]:
        if check["waived"]:
            waived = _("{name} waived: {reason} ({detail})")
            screen.prose(
                waived.format(name=check["name"], reason=check["waived"], detail=check["detail"]),
                indent=2,
            )
        elif not check["kept"]:
            screen.prose(f"{check['name']}: {check['detail']}", "bad", indent=2)


def print_summary(screen: Screen, report: Mapping[str, Any]) -> None:
    """Print where the time went, and how many breaks of how many are proven."""
    rows: list[Row] = report["proofs"]
    if len(rows) > 1:
        screen.line()
        _print_table(screen, rows)
        screen.line()
        screen.prose(_figures(report))
    for reason in report["broken"]:
        screen.error(_("Not usable"), reason, _("see why: breaklab lint"))
    if report["missing"]:
        names = ", ".join(label(bug_id) for bug_id in report["missing"])
        screen.prose(_("No shard proved {names}.").format(names=names), "bad")
    num_proven = sum(row["proven"] for row in rows)
    total = len(rows) + len(report["broken"]) + len(report["missing"])
    text = ngettext(
        "{proven} of {total} break proven", "{proven} of {total} breaks proven", total
    ).format(proven=num_proven, total=total)
    screen.line(text, "good" if report["proven"] else "bad")


def write_junit(report: Mapping[str, Any], path: Path) -> None:
    """Write a report in JUnit's form.

    Raises:
        TreeError: the file can't be written; what was there is as it was.
    """
    from breaklab.prove.junit import junit
    from breaklab.tree.atomic import replace_file

    replace_file(path, junit(report).encode())


def _print_table(screen: Screen, rows: list[Row]) -> None:
    repeated = any(_spent(row, "repeat ") for row in rows)
    headings = [_("ID"), _("VERDICT"), _("RED"), _("TESTS"), _("RUNS")]
    headings += [_("ROUNDS")] if repeated else []
    cells = []
    for row in rows:
        tests = _spent(row, "test") + _spent(row, "green again")
        spent = [tests, _spent(row, "run ")]
        spent += [_spent(row, "repeat ")] if repeated else []
        verdict = _("proven") if row["proven"] else _("NOT PROVEN")
        times = [f"{seconds:.1f} s" for seconds in (*spent, float(row["seconds"]))]
        cells.append([label(row["bug_id"]), verdict, str(len(row["red"])), *times])
    screen.table([Column(heading) for heading in (*headings, _("IN ALL"))], cells)


def _spent(row: Row, phase: str) -> float:
    """Return the seconds of a phase, or of all whose names begin so where it ends with a blank."""
    return sum(
        float(each["seconds"])
        for each in row["phases"]
        if each["name"] == phase or (phase.endswith(" ") and each["name"].startswith(phase))
    )


def _figures(report: Mapping[str, Any]) -> str:
    parts = report["shards"]
    where = (
        ngettext("with {num} job", "with {num} jobs", parts[0]["jobs"]).format(num=parts[0]["jobs"])
        if len(parts) == 1
        else ngettext("in {num} shard", "in {num} shards", len(parts)).format(num=len(parts))
    )
    return _(
        "{num} breaks in {seconds:.1f} s {where}: {each:.1f} s per break; of these {controls:.1f} "
        "s were for the controls, which all of a lab share"
    ).format(
        num=len(report["proofs"]),
        seconds=report["seconds"],
        where=where,
        each=report["seconds_per_break"],
        controls=report["controls_s"],
    )
