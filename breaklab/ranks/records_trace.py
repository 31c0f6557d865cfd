"""What a blocked rank can still tell: torch's Flight Recorder, and where its main thread is.

The Flight Recorder also sees collectives that C++ issues, as DDP does in ``backward``; it does not
see gloo's sends and receives. Only a thread of the rank itself can read it, so each rank has one,
which answers requests of the watcher. The functions are torch's private ones: where they are not,
a rank answers without a trace, and such deadlocks get no proof.
"""

from __future__ import annotations

import _thread
import importlib
import json
import math
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breaklab.ranks.places import is_torchs, is_users, shown_path
from breaklab.ranks.ranges import format_ranks, parse_ranks
from breaklab.ranks.records import ANSWER, ANSWERER, REQUEST, TRACE_BYTES, Page
from breaklab.ranks.waking import CAN_WAKE, prepare_to_wait, wait_to_be_woken

_POLL_S = 0.1  # where a thread can't be woken from outside
_MAX_ENTRIES = 128  # as many of the newest collectives of all groups
# The recorder's names of dtypes: torch's names, and bytes per element.
_DTYPES = {
    "Bool": ("bool", 1),
    "Byte": ("uint8", 1),
    "Char": ("int8", 1),
    "Short": ("int16", 2),
    "Int": ("int32", 4),
    "Long": ("int64", 8),
    "Half": ("float16", 2),
    "BFloat16": ("bfloat16", 2),
    "Float": ("float32", 4),
    "Double": ("float64", 8),
}


@dataclass(frozen=True)
class TracedCollective:
    """One collective as the Flight Recorder has it."""

    group: str  # torch's name of the group
    sequence: int  # of collectives in the group, from 1
    operation: str  # ``all_reduce``
    shape: str
    dtype: str
    num_bytes: int  # -1: unknown, or several tensors
    retired: bool  # finished
    created_ns: int  # as ``time.time_ns()``


@dataclass(frozen=True)
class Trace:
    """A rank's answer to a request."""

    collectives: tuple[TracedCollective, ...]
    groups: Mapping[str, tuple[int, ...]]  # global ranks of each group that this rank is in
    available: bool  # whether this torch has a Flight Recorder that sees gloo
    in_torch: bool  # the main thread's innermost Python frame is torch's
    place: str  # of the main thread


def serve_traces(page: Page) -> None:
    """Answer the watcher's requests in a thread that Python's ``threading`` does not count."""
    main = threading.main_thread().ident
    running = _thread.allocate_lock()
    running.acquire()
    _thread.start_new_thread(_serve, (page, main, running))
    running.acquire()  # before it runs it is not counted, and another thread would be taken for it


def _serve(page: Page, main: int | None, running: _thread.LockType) -> None:
    running.release()
    if CAN_WAKE:
        prepare_to_wait()
        page.words[ANSWERER] = threading.get_native_id()
    while True:
        request = page.words[REQUEST]
        if request != page.words[ANSWER]:
            page.answer(request, _encode(main))
        elif CAN_WAKE:
            wait_to_be_woken()
        else:
            time.sleep(_POLL_S)


def _encode(main: int | None) -> bytes:
    """The trace as JSON, of the newest collectives as many as fit."""
    entries = _flight_recorder()
    in_torch, place = _whereabouts(main)
    answer: dict[str, Any] = {"groups": _groups(), "in_torch": in_torch, "place": place}
    number = _MAX_ENTRIES
    while True:
        answer["entries"] = None if entries is None else entries[-number:] if number else []
        data = json.dumps(answer).encode()
        if len(data) <= TRACE_BYTES or not number:
            return data
        number //= 2


def _groups() -> dict[str, str]:
    try:
        from torch.distributed.distributed_c10d import _world

        return {
            str(group.group_name): format_ranks(ranks)
            for group, ranks in list(_world.pg_group_ranks.items())
        }
    except Exception:  # private as well
        return {}


def _flight_recorder() -> list[list[Any]] | None:
    """Collectives, oldest first, each as a TracedCollective's fields; None: no recorder."""
    try:
        dump = vars(importlib.import_module("torch._C._distributed_c10d"))["_dump_fr_trace_json"]
        entries = json.loads(dump())["entries"]
        return [_fields(entry) for entry in entries if not entry["is_p2p"]]
    except Exception:  # private and undocumented: whatever it does, the rank must live
        return None


def _fields(entry: dict[str, Any]) -> list[Any]:
    sizes, dtypes = entry["input_sizes"], entry["input_dtypes"]
    name, item_bytes = _DTYPES.get(dtypes[0], (dtypes[0], 0)) if dtypes else ("", 0)
    single = len(sizes) == 1 and item_bytes > 0
    return [
        str(entry["process_group"][0]),
        entry["collective_seq_id"],
        entry["profiling_name"].rpartition(":")[2],
        str(tuple(sizes[0])) if sizes else "",
        name,
        math.prod(sizes[0]) * item_bytes if single else -1,
        entry["retired"],
        entry["time_created_ns"],
    ]


def _whereabouts(main: int | None) -> tuple[bool, str]:
    frame = sys._current_frames().get(main or 0)
    in_torch = frame is not None and is_torchs(frame.f_code.co_filename)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return in_torch, f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""


def parse_trace(data: bytes) -> Trace:
    """Read what a rank answered."""
    answer = json.loads(data)
    entries = answer["entries"]
    return Trace(
        collectives=tuple(TracedCollective(*entry) for entry in entries or ()),
        groups={name: parse_ranks(ranks) for name, ranks in answer["groups"].items()},
        available=bool(entries),
        in_torch=answer["in_torch"],
        place=answer["place"],
    )
