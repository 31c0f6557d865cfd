"""What ``verify --json`` prints, and one such report made of those of several shards.

A report is a plain dictionary, since it goes through files and other machines:

- ``format``: 1
- ``proven``: whether every proof says so, every spec is usable, and nothing is missing
- ``bug_ids``: the breaks that all shards together are to prove; ``missing``: in a merged report,
  those that no shard did
- ``proofs``: for each break its checks, phases, red tests and ``seconds`` of its own: without the
  controls, which all proofs of a lab share and wait for
- ``broken``: why specs can't be used
- ``shards``: of each part ``number``, ``of``, ``jobs``, ``seconds`` on the clock and ``controls_s``
- ``repeat``: how many rounds each break was put through
- ``seconds`` and ``controls_s``: of all parts together; ``seconds_per_break``: the quotient
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from breaklab.errors import ProjectError
from breaklab.i18n import _
from breaklab.prove.proof import Proof
from breaklab.prove.shards import Shard

FORMAT = 1
Report = dict[str, Any]
_KEYS = {"bug_ids": list, "proofs": list, "broken": list, "shards": list, "repeat": int}
_PROOF_KEYS = {"bug_id", "proven", "checks", "phases", "red", "seconds"}
_PART_KEYS = {"number", "of", "jobs", "seconds", "controls_s"}
_CONTROLS = "controls"


@dataclass(frozen=True)
class Session:
    """How the proofs of a report were made."""

    bug_ids: Sequence[str | None]  # of all shards; None for a break whose name is hidden
    shard: Shard
    jobs: int
    repeat: int
    seconds: float  # from beginning to end, on the clock


def report_of(
    session: Session,
    proofs: Sequence[Proof],
    public_ids: Mapping[str, str | None],
    broken: Sequence[str],
) -> Report:
    """Return the report of one shard, ready for ``json.dumps``.

    Args:
        session: how the proofs were made.
        proofs: the proofs, in any order.
        public_ids: how each break is called, by its bug id.
        broken: why specs can't be used.
    """
    waits = [phase.seconds for p in proofs for phase in p.phases if phase.name == _CONTROLS]
    part = {
        "number": session.shard.number,
        "of": session.shard.of,
        "jobs": session.jobs,
        "seconds": round(session.seconds, 3),
        "controls_s": round(max(waits, default=0.0), 3),
    }
    rows = [row_of(p, public_ids[p.bug_id]) for p in sorted(proofs, key=lambda p: p.bug_id)]
    return _report(session.bug_ids, [], rows, broken, [part], session.repeat)


def merge_reports(paths: Sequence[Path]) -> Report:
    """Return one report made of those of several shards of one catalogue.

    The breaks of a shard that is not among them are ``missing``: the whole is not proven then.

    Raises:
        ProjectError: a file is no report, two hold the same shard, or they are not of one whole.
    """
    reports = {path: _read(path) for path in dict.fromkeys(paths)}
    first_path, first = next(iter(reports.items()))
    holders: dict[int, Path] = {}
    for path, report in reports.items():
        numbers_of = {part["of"] for part in (*first["shards"], *report["shards"])}
        if report["bug_ids"] != first["bug_ids"] or len(numbers_of) != 1:
            message = _("{path} and {other} are not shards of one catalogue")
            hint = _("they need the same breaks, and the same number of shards")
            raise ProjectError(message.format(path=path, other=first_path), hint=hint)
        for part in report["shards"]:
            if part["number"] in holders:
                message = _("{path} and {other} both hold shard {number}/{of}")
                other = holders[part["number"]]
                raise ProjectError(
                    message.format(path=path, other=other, number=part["number"], of=part["of"])
                )
            holders[part["number"]] = path
    every = reports.values()
    proofs = [proof for report in every for proof in report["proofs"]]
    done = {proof["bug_id"] for proof in proofs}
    return _report(
        first["bug_ids"],
        [bug_id for bug_id in first["bug_ids"] if bug_id not in done],
        sorted(proofs, key=lambda proof: str(proof["bug_id"])),
        list(dict.fromkeys(reason for report in every for reason in report["broken"])),
        sorted((part for report in every for part in report["shards"]), key=_number),
        min(report["repeat"] for report in every),
    )


def row_of(proof: Proof, public_id: str | None) -> dict[str, Any]:
    """Return one proof as an entry of ``proofs``; ``public_id`` is None for a hidden name."""
    own = [phase.seconds for phase in proof.phases if phase.name != _CONTROLS]
    return {
        "bug_id": public_id,
        "proven": proof.proven,
        "seconds": round(sum(own), 3),
        "checks": [asdict(check) for check in proof.checks],
        "phases": [{"name": each.name, "seconds": round(each.seconds, 3)} for each in proof.phases],
        "red": list(proof.red),
    }


def _report(
    bug_ids: Sequence[str | None],
    missing: list[str | None],
    proofs: list[dict[str, Any]],
    broken: Sequence[str],
    parts: list[dict[str, Any]],
    repeat: int,
) -> Report:
    seconds = sum(part["seconds"] for part in parts)
    return {
        "format": FORMAT,
        "proven": not broken and not missing and all(proof["proven"] for proof in proofs),
        "bug_ids": list(bug_ids),
        "missing": missing,
        "proofs": proofs,
        "broken": list(broken),
        "shards": parts,
        "repeat": repeat,
        "seconds": round(seconds, 3),
        "controls_s": round(sum(part["controls_s"] for part in parts), 3),
        "seconds_per_break": round(seconds / len(proofs), 3) if proofs else 0.0,
    }


def _number(part: Mapping[str, Any]) -> int:
    return int(part["number"])


def _read(path: Path) -> Report:
    try:
        report = json.loads(path.read_bytes())
    except OSError as error:
        message = _("{file} can't be read: {reason}")
        raise ProjectError(message.format(file=path, reason=error.strerror)) from error
    except ValueError as error:
        raise _no_report(path) from error
    if not _is_report(report):
        raise _no_report(path)
    return dict(report)


def _is_report(value: Any) -> bool:
    """Return whether a value has the keys that are read here."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return False
    if not all(isinstance(value.get(key), kind) for key, kind in _KEYS.items()):
        return False
    for rows, keys in ((value["proofs"], _PROOF_KEYS), (value["shards"], _PART_KEYS)):
        if not all(isinstance(row, dict) and keys <= row.keys() for row in rows):
            return False
    return bool(value["shards"])


def _no_report(path: Path) -> ProjectError:
    message = _("{path} is no report of verify").format(path=path)
    return ProjectError(message, hint=_("make one: breaklab verify --shard 1/2 --json > a.json"))
