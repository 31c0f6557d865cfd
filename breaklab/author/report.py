"""Findings in the forms that CI services show beside the changed lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from breaklab import __version__
from breaklab.errors import Finding

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def github_annotations(findings: Sequence[Finding], root: Path) -> list[str]:
    """Return one workflow command of GitHub Actions for each finding.

    Args:
        findings: what lint found.
        root: the repository; paths are written relative to it.
    """
    lines = []
    for finding in findings:
        place = finding.location
        fields = [f"file={_property(_relative(place.path, root))}"]
        fields += [f"line={place.line}"] if place.line else []
        fields += [f"col={place.column}"] if place.column else []
        fields.append(f"title={_property(f'breaklab {finding.rule}')}")
        lines.append(f"::error {','.join(fields)}::{_data(_text(finding))}")
    return lines


def sarif(findings: Sequence[Finding], root: Path) -> dict[str, Any]:
    """Return the findings as a SARIF 2.1.0 log, ready for ``json.dumps``.

    Args:
        findings: what lint found.
        root: the repository; paths are written relative to it.
    """
    rules = sorted({finding.rule for finding in findings})
    driver = {
        "name": "breaklab",
        "version": __version__,
        "rules": [{"id": rule} for rule in rules],
    }
    results = [_result(finding, rules.index(finding.rule), root) for finding in findings]
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding, rule_index: int, root: Path) -> dict[str, Any]:
    place = finding.location
    physical: dict[str, Any] = {"artifactLocation": {"uri": _relative(place.path, root)}}
    if place.line:
        physical["region"] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": "error",
        "message": {"text": _text(finding)},
        "locations": [{"physicalLocation": physical}],
    }


def _text(finding: Finding) -> str:
    return f"{finding.message}\n{finding.hint}" if finding.hint else finding.message


def _relative(path: str, root: Path) -> str:
    """Return a path relative to ``root`` where it lies inside, with forward slashes."""
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return Path(path).as_posix()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
