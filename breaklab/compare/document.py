"""A comparison as one JSON document, with every number of both runs."""

from __future__ import annotations

import math
from typing import Any

from breaklab.compare.comparison import Comparison, Side
from breaklab.compare.distance import standard_error
from breaklab.compare.series import numeric_keys
from breaklab.compare.tables import rows
from breaklab.compare.words import headline
from breaklab.ranks.differences import Difference


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON values; NaN and infinity, which JSON lacks, as texts."""
    subject = comparison.subject
    return {
        "bug_id": subject.bug_id or None,
        "lab": subject.lab,
        "variant": subject.variant or None,
        "args": list(subject.args),
        "num_ranks": subject.num_ranks,
        "as_it_stands": subject.as_it_stands,
        "summary": headline(comparison),
        "parted": _parting(comparison.parting),
        "partings": [_parting(found) for found in comparison.partings],
        "healthy": _side(comparison.healthy),
        "broken": _side(comparison.broken),
        "keys": [panel.key for panel in comparison.panels],
        "rows": _rows(comparison),
        "distance_standard_error": _standard_error(comparison),
    }


def _parting(found: Difference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "key": found.key,
        "step": found.step,
        "rank": found.rank,
        "healthy": _finite(found.expected),
        "broken": _finite(found.value),
        "largest": _finite(found.largest),
    }


def _side(side: Side) -> dict[str, Any]:
    report = side.report
    return {
        "outcome": side.judged.outcome.value,
        "summary": side.judged.summary,
        "last_step": report.last_step,
        "last_step_with_numbers": side.last_step,
        "duration_s": round(report.duration_s, 3),
        "numbers": list(numeric_keys(report.metrics)),
    }


def _rows(comparison: Comparison) -> list[dict[str, Any]]:
    keys = [panel.key for panel in comparison.panels]
    return [
        {
            "step": row.step,
            "rank": row.rank,
            **{
                key: {"healthy": _finite(healthy), "broken": _finite(broken)}
                for key, (healthy, broken) in zip(keys, row.pairs, strict=True)
            },
            "distance": _finite(row.distance),
            "parts": list(row.parts),
        }
        for row in rows(comparison, comparison.panels)
    ]


def _standard_error(comparison: Comparison) -> float | None:
    size = comparison.num_projections
    return round(standard_error(size), 4) if size else None


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
