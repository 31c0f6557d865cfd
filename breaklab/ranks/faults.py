"""Sick machines on purpose: a rank that is slow, stops, or dies, so it can be told from a bug.

Stopping and killing happen inside the rank, in the moment in which it has printed its step, so the
same step is hit every time. Slowness comes from outside: the supervisor stops and continues the
process in short turns, which slows whatever it does, C++ included.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.ranks.jobs import Fault

_NEEDS = {"slow": "factor", "stop": "step", "kill": "step"}
_TURN_S = 0.02  # how long a slow rank runs before it has to wait
_EXAMPLE = "slow:rank=1,factor=5  stop:rank=2,step=3  kill:rank=0,step=4"


def parse_fault(text: str, num_ranks: int) -> Fault:
    """Return the fault that ``text`` describes, such as ``stop:rank=2,step=3``.

    Raises:
        BreaklabError: the text has another form, or names a rank that is not there.
    """
    kind, _colon, rest = text.partition(":")
    pairs = [pair.partition("=")[::2] for pair in rest.split(",")]
    fields = {name.strip(): value.strip() for name, value in pairs}
    needed = _NEEDS.get(kind.strip())
    if needed is None or set(fields) != {"rank", needed}:
        raise _unreadable(text)
    try:
        rank, number = int(fields["rank"]), float(fields[needed])
    except ValueError:
        raise _unreadable(text) from None
    if not 0 <= rank < num_ranks:
        raise BreaklabError(
            _("the fault {text} is for rank {rank}, and there are {num_ranks} ranks").format(
                text=text, rank=rank, num_ranks=num_ranks
            ),
            hint=_("Ranks count from 0 to {last}.").format(last=num_ranks - 1),
        )
    if needed == "factor":
        if not 1 <= number <= 1000:
            raise _unreadable(text)
        return Fault("slow", rank, factor=number)
    if number < 0 or not number.is_integer():
        raise _unreadable(text)
    return Fault(kind.strip(), rank, step=int(number))


def _unreadable(text: str) -> BreaklabError:
    return BreaklabError(
        _("the fault {text} can't be read").format(text=repr(text)),
        hint=_("Write one of these forms, with a factor from 1 to 1000: {example}").format(
            example=_EXAMPLE
        ),
    )


def strike_at_step(stream: TextIO, faults: Sequence[Fault], rank: int, step_line: str) -> None:
    """Make ``stream`` stop or kill this process as soon as it has written the step of a fault."""
    mine = {fault.step: fault for fault in faults if fault.rank == rank and fault.kind != "slow"}
    if not mine or not step_line:
        return
    pattern = re.compile(step_line)
    pending = ""
    write = stream.write

    def watched(text: str) -> int:
        nonlocal pending
        written = write(text)
        *lines, pending = (pending + text).split("\n")
        for line in lines:
            _strike(pattern.search(line), mine, stream.flush)
        return written

    stream.write = watched  # type: ignore[method-assign]


def _strike(
    found: re.Match[str] | None, faults: Mapping[int | None, Fault], flush: Callable[[], None]
) -> None:
    fault = faults.get(int(found["step"])) if found else None
    if fault is not None:
        flush()
        os.kill(os.getpid(), signal.SIGSTOP if fault.kind == "stop" else signal.SIGKILL)


class SlowDown:
    """Lets slow ranks run for a turn and wait for factor - 1 turns, again and again."""

    def __init__(self, faults: Sequence[Fault], pids: Mapping[int, int]) -> None:
        now = time.monotonic()
        self._slow = {
            pids[fault.rank]: fault.factor
            for fault in faults
            if fault.kind == "slow" and fault.rank in pids and fault.factor > 1
        }
        self._running = dict.fromkeys(self._slow, True)
        self._next = dict.fromkeys(self._slow, now + _TURN_S)

    def turn(self) -> float | None:
        """Stop and continue whom it is time for; return the seconds until the next turn."""
        now = time.monotonic()
        for pid, factor in self._slow.items():
            if now < self._next[pid]:
                continue
            runs = self._running[pid] = not self._running[pid]
            os.kill(pid, signal.SIGCONT if runs else signal.SIGSTOP)
            self._next[pid] = now + (_TURN_S if runs else _TURN_S * (factor - 1))
        return max(0.0, min(self._next.values()) - now) if self._next else None

    def forget(self, pid: int) -> None:
        """Leave a rank that has ended alone: its pid may soon be another's."""
        for table in (self._slow, self._running, self._next):
            table.pop(pid, None)
