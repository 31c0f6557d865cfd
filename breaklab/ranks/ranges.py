"""Sets of ranks as people write them: ``0-3,6``."""

from __future__ import annotations

from collections.abc import Iterable


def format_ranks(ranks: Iterable[int]) -> str:
    """Write ranks in ascending order, runs of three and more shortened: ``0-3,6``."""
    parts: list[str] = []
    run: list[int] = []
    for rank in [*sorted(set(ranks)), None]:
        if run and rank != run[-1] + 1:
            parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(member) for member in run]
            run = []
        if rank is not None:
            run.append(rank)
    return ",".join(parts)


def parse_ranks(text: str) -> tuple[int, ...]:
    """Read what :func:`format_ranks` wrote."""
    ranks: list[int] = []
    for part in filter(None, text.split(",")):
        first, _dash, last = part.partition("-")
        ranks.extend(range(int(first), int(last or first) + 1))
    return tuple(ranks)
