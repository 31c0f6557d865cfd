"""What the last run came to, kept so that it can be diagnosed without running it again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breaklab.errors import TreeError
from breaklab.model import Outcome, Project

if TYPE_CHECKING:
    from breaklab.ranks.jobs import RankWait

_KEYS = {"lab", "args", "num_ranks", "outcome", "summary", "details"}
_OUTCOMES = {outcome.value for outcome in Outcome}


def save_last_run(project: Project, run: dict[str, Any]) -> None:
    """Keep the JSON of a run, its diagnosis included; where it can't be written, do without."""
    from breaklab.tree.state import prepare_state_dir, write_json

    with suppress(OSError):
        prepare_state_dir(project)
        write_json(_path(project), run)


def load_last_run(project: Project) -> dict[str, Any] | None:
    """Return what :func:`save_last_run` kept, or None."""
    from breaklab.tree.state import read_json

    try:
        run = read_json(_path(project))
    except TreeError:  # an unreadable diagnosis is no reason to stop
        return None
    return run if run is not None and set(run) >= _KEYS and run["outcome"] in _OUTCOMES else None


def waits_of(run: dict[str, Any]) -> tuple[RankWait, ...]:
    """Return where the ranks of a kept run waited; entries of another form are left out."""
    from breaklab.ranks.jobs import RankWait

    waits = []
    for each in run.get("waits", []):
        with suppress(TypeError):
            waits.append(RankWait(**each))
    return tuple(waits)


def _path(project: Project) -> Path:
    return project.state_dir / "last-run.json"
