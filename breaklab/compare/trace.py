"""A timeline in the Trace Event Format of Chrome, which Perfetto opens too. Pure.

https://ui.perfetto.dev, "Open trace file"; the page works on the file without sending it anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from breaklab.compare.timeline import Collective, Timeline
from breaklab.i18n import _

_MICROSECONDS = 1e6


def chrome_trace(timelines: Sequence[Timeline]) -> dict[str, Any]:
    """Return the JSON object: a process for each run, a thread for each rank.

    Each operation is a complete event (``X``) with ``ts`` and ``dur`` in microseconds since the
    run's first operation. One that never returned lasts to the run's last movement, and says so.
    """
    events = [event for pid, each in enumerate(timelines) for event in _events(pid, each)]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _events(pid: int, timeline: Timeline) -> Iterator[dict[str, Any]]:
    yield _metadata("process_name", pid, 0, name=timeline.name)
    yield _metadata("process_sort_index", pid, 0, sort_index=pid)
    for rank in range(timeline.num_ranks):
        yield _metadata("thread_name", pid, rank, name=_("rank {rank}").format(rank=rank))
        yield _metadata("thread_sort_index", pid, rank, sort_index=rank)
    for collective in timeline.collectives:
        left_s = timeline.until_s if collective.left_s is None else collective.left_s
        yield {
            "name": collective.operation,
            "cat": "collective" if collective.peer is None else "point-to-point",
            "ph": "X",
            "ts": collective.entered_s * _MICROSECONDS,
            "dur": (left_s - collective.entered_s) * _MICROSECONDS,
            "pid": pid,
            "tid": collective.rank,
            "args": _args(collective),
        }


def _metadata(kind: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _args(collective: Collective) -> dict[str, Any]:
    known = {
        "sequence": collective.sequence,
        "group": collective.group,
        "shape": collective.shape,
        "dtype": collective.dtype,
        "peer": collective.peer,
        "source": collective.place,
    }
    args = {key: value for key, value in known.items() if value not in (None, "")}
    return args | {"returned": collective.left_s is not None, "waited_for": collective.has_end}
