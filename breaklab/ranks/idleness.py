"""Whether processes did anything, told from what Linux counts for each of their threads.

A process that only waits still has threads that wake up many times a second to look for news, as
gloo's do. They give themselves away: they sleep again at once, so in a while they were scheduled
often and hardly ran. Every other thread of an idle process was not scheduled at all.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

_MIN_WAKE_UPS = 3  # of a thread that has looked for news and found none
_MAX_SHARE = 0.1  # of the time, for all such threads of a process together


@dataclass(frozen=True)
class _Thread:
    state: str  # ``S`` sleeps, ``R`` runs or wants to, ``T`` is stopped
    run_ns: int  # time on a processor
    num_slices: int  # how often it was given one


@dataclass(frozen=True)
class Activity:
    """What the threads of a process had done by some moment; empty where that can't be known."""

    threads: dict[int, _Thread]

    @classmethod
    def of(cls, pid: int, *, ignore: int = 0) -> Activity:
        """Read it for process ``pid``, but for its thread ``ignore``."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            tasks = {int(task.name): task for task in Path(f"/proc/{pid}/task").iterdir()}
            return cls({tid: _read(task) for tid, task in tasks.items() if tid != ignore})
        return cls({})

    def idle_until(self, later: Activity, seconds: float) -> bool:
        """Whether the process only slept between this moment and a ``later`` one."""
        if not self.threads or self.threads.keys() != later.threads.keys():
            return False
        run_ns = 0
        for tid, before in self.threads.items():
            now = later.threads[tid]
            run_ns += now.run_ns - before.run_ns
            wake_ups = now.num_slices - before.num_slices
            asleep = before.state == now.state == "S" and wake_ups == 0
            looks = wake_ups >= _MIN_WAKE_UPS and {before.state, now.state} <= {"S", "R"}
            if not asleep and not looks:
                return False
        return run_ns <= seconds * 1e9 * _MAX_SHARE


def _read(task: Path) -> _Thread:
    state = (task / "stat").read_text().rpartition(")")[2].split()[0]
    run_ns, _wait_ns, num_slices = (task / "schedstat").read_text().split()
    return _Thread(state, int(run_ns), int(num_slices))
