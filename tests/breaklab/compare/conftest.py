"""Two runs made of plain numbers, and what their ranks communicated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from breaklab.compare.comparison import Comparison, Subject, compare_reports
from breaklab.compare.timeline import Collective
from breaklab.model import Metrics
from breaklab.ranks.jobs import RankEnd, RunReport
from breaklab.ranks.outcome import judge

METRICS = Metrics(
    args=(), compare=("grad_norm",), curves=("loss", "grad_norm"), sketch="params_sketch"
)
Row = dict[str, Any]


def report(row: Callable[[int, int], Row], *, num_steps: int = 6, num_ranks: int = 2) -> RunReport:
    """A run that ended by itself; ``row`` gets rank and step."""
    return RunReport(
        ends=tuple(RankEnd(rank, 0, 1.0) for rank in range(num_ranks)),
        lines=(),
        duration_s=1.0,
        last_step=num_steps - 1,
        metrics={
            rank: tuple({"step": step, **row(rank, step)} for step in range(num_steps))
            for rank in range(num_ranks)
        },
    )


def healthy_row(rank: int, step: int) -> Row:
    return {
        "loss": 2.3 - 0.1 * step + 0.01 * rank,
        "grad_norm": 1.0 + step,
        "params_sketch": [3.0 + step, 4.0],
    }


def broken_row(rank: int, step: int) -> Row:
    """As the healthy one up to step 2; then the gradient is a tenth larger."""
    row = healthy_row(rank, step)
    if step > 2:
        row["grad_norm"] *= 1.1
        row["params_sketch"] = [3.0 + step, 4.0 + 0.5 * step]
    return row


def compared(
    healthy: RunReport, broken: RunReport, metrics: Metrics | None = METRICS
) -> Comparison:
    """The two laid side by side, as a command would."""
    subject = Subject("35-01", "phase35", "silent", ("--sync", "bucket"), len(broken.ends))
    return compare_reports(
        subject,
        metrics,
        (healthy, judge(healthy, metrics, None)),
        (broken, judge(broken, metrics, healthy)),
    )


def collectives(
    times: Sequence[tuple[int, float, float | None]], **fields: Any
) -> list[Collective]:
    """Collectives from (rank, entered, left), numbered for each rank."""
    numbers: dict[int, int] = {}
    made = []
    for rank, entered_s, left_s in times:
        numbers[rank] = numbers.get(rank, 0) + 1
        settings = {"operation": "all_reduce", "sequence": numbers[rank], **fields}
        made.append(Collective(rank, entered_s=entered_s, left_s=left_s, **settings))
    return made
