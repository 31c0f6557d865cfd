"""Two runs of one lab, with the same arguments, laid side by side. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from breaklab.compare.distance import distances, sketch_size
from breaklab.compare.series import Points, curve_keys, last_step, points_of, watched_keys
from breaklab.model import Metrics
from breaklab.ranks.differences import Difference, from_reference
from breaklab.ranks.jobs import RunReport
from breaklab.ranks.outcome import Judged


@dataclass(frozen=True)
class Subject:
    """What was run twice."""

    bug_id: str  # ``""`` for a break whose name stays hidden
    lab: str
    variant: str
    args: tuple[str, ...]
    num_ranks: int
    as_it_stands: bool = False  # the broken run is the learner's tree with their edits


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    report: RunReport
    judged: Judged
    last_step: int | None  # the last step with numbers


@dataclass(frozen=True)
class Panel:
    """One number of both runs, by rank."""

    key: str
    healthy: Mapping[int, Points]
    broken: Mapping[int, Points]
    parting: Difference | None = None  # where the two first part

    @property
    def steps(self) -> tuple[int, int]:
        """The first and the last step of any curve."""
        steps = [step for run in self.runs for points in run.values() for step, _value in points]
        return min(steps, default=0), max(steps, default=0)

    @property
    def runs(self) -> tuple[Mapping[int, Points], Mapping[int, Points]]:
        """Both runs, the healthy one first."""
        return self.healthy, self.broken

    @property
    def has_gaps(self) -> bool:
        """Whether a number is NaN or infinite, so that a curve can't show it."""
        return any(
            not math.isfinite(value)
            for run in self.runs
            for points in run.values()
            for _step, value in points
        )


@dataclass(frozen=True)
class Comparison:
    """What two runs have in common and where they part."""

    subject: Subject
    healthy: Side
    broken: Side
    panels: tuple[Panel, ...]
    partings: tuple[Difference, ...]  # one for each number that parts, the earliest first
    distance: Mapping[int, Points] = field(default_factory=dict)  # fraction, by rank
    num_projections: int = 0  # that `distance` was estimated from

    @property
    def parting(self) -> Difference | None:
        """The first step at which any number of the two runs parts."""
        return self.partings[0] if self.partings else None

    @property
    def steps(self) -> tuple[int, int]:
        """The first and the last step of any number."""
        spans = [panel.steps for panel in self.panels]
        return min((a for a, _b in spans), default=0), max((b for _a, b in spans), default=0)

    @property
    def ends_early(self) -> bool:
        """Whether the broken run's numbers end before the healthy run's do."""
        healthy, broken = self.healthy.last_step, self.broken.last_step
        return healthy is not None and (broken is None or broken < healthy)


def compare_reports(
    subject: Subject,
    metrics: Metrics | None,
    healthy: tuple[RunReport, Judged],
    broken: tuple[RunReport, Judged],
) -> Comparison:
    """Lay the reports of two runs side by side.

    Args:
        subject: what was run.
        metrics: how the lab reports numbers; None: it doesn't, and only outcomes are compared.
        healthy: the reference and what it was judged to be.
        broken: the other run and what it was judged to be.
    """
    ours, theirs = broken[0].metrics, healthy[0].metrics
    sides = (_side(*healthy), _side(*broken))
    if metrics is None:
        return Comparison(subject, *sides, (), ())
    partings = _partings(metrics, healthy[0], broken[0])
    panels = tuple(
        Panel(key, points_of(theirs, key), points_of(ours, key), partings.get(key))
        for key in curve_keys(metrics, theirs, ours)
    )
    return Comparison(
        subject,
        *sides,
        panels,
        tuple(sorted(partings.values(), key=lambda found: (found.step, found.rank))),
        distances(ours, theirs, metrics.sketch) if metrics.sketch else {},
        sketch_size(theirs, metrics.sketch) if metrics.sketch else 0,
    )


def _side(report: RunReport, judged: Judged) -> Side:
    return Side(report, judged, last_step(report.metrics))


def _partings(metrics: Metrics, healthy: RunReport, broken: RunReport) -> dict[str, Difference]:
    """Return where each number parts; only steps that both runs have are looked at."""
    found = {}
    for key in watched_keys(metrics, healthy.metrics, broken.metrics):
        difference = from_reference(
            broken.metrics, healthy.metrics, (key,), metrics.tolerance, complete=False
        )
        if difference is not None:
            found[key] = difference
    return found
