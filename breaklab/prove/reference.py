"""The pristine lab's run that a learner's run is compared with, kept so it is made only once.

A run is `wrong` or `slow` only in comparison. The reference runs the pristine source in a scratch
copy with the same arguments; its metrics are kept under ``.breaklab/cache``, named by a hash of
everything they depend on.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from breaklab.model import Lab, Project
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks.jobs import RunReport
from breaklab.ranks.launch import run_lab
from breaklab.ranks.warm import WarmParent
from breaklab.tree.state import prepare_state_dir

_FORMAT = 1


class References:
    """Reference runs of one lab, from the cache where they were made before.

    Args:
        project: where the cache lies.
        lab: the lab to run.
        overlay: pristine bytes by path relative to the project's root, for a source that has a
            break in it.
    """

    def __init__(self, project: Project, lab: Lab, overlay: Mapping[str, bytes]) -> None:
        self._project = project
        self._lab = lab
        self._overlay = overlay

    def get(
        self,
        args: tuple[str, ...],
        num_ranks: int,
        warm: WarmParent,
        *,
        on_start: Callable[[], None] | None = None,
    ) -> RunReport | None:
        """Return the reference for these arguments; run it, after ``on_start``, if it isn't kept.

        None where the pristine lab itself does not come to a healthy end with them.

        Raises:
            RunError: the ranks could not be started.
        """
        path = self._path(args, num_ranks)
        kept = _load(path)
        if kept is not None:
            return kept
        if on_start:
            on_start()
        report = self._run(args, num_ranks, warm)
        if report.stall is not None or any(end.exit_code != 0 for end in report.ends):
            return None
        _save(self._project, path, report)
        return report

    def known(self, args: tuple[str, ...], num_ranks: int) -> RunReport | None:
        """Return the reference if it was run before: its duration, last step and numbers."""
        return _load(self._path(args, num_ranks))

    def _run(self, args: tuple[str, ...], num_ranks: int, warm: WarmParent) -> RunReport:
        with scratch_copy(
            self._project, self._lab, overlay=self._overlay, parent=warm.folder()
        ) as scratch:
            return run_lab(warm, scratch.lab, args=args, num_ranks=num_ranks)

    def _path(self, args: tuple[str, ...], num_ranks: int) -> Path:
        digest = hashlib.sha256()
        parts = (_FORMAT, args, num_ranks, self._lab.python, _versions(), sorted(self._overlay))
        digest.update(repr(parts).encode())
        for file in sorted(self._lab.root.rglob("*")):
            if file.suffix == ".pyc" or not file.is_file():
                continue
            relative = file.relative_to(self._project.root).as_posix()
            content = self._overlay.get(relative)
            digest.update(relative.encode() + b"\0")
            digest.update(file.read_bytes() if content is None else content)
        return self._project.state_dir / "cache" / f"reference-{digest.hexdigest()[:32]}.json"


def _versions() -> tuple[str, str]:
    try:
        return platform.python_version(), metadata.version("torch")
    except metadata.PackageNotFoundError:
        return platform.python_version(), ""


def _load(path: Path) -> RunReport | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_text(encoding="utf-8"))
        return RunReport(
            ends=(),
            lines=(),
            duration_s=float(kept["duration_s"]),
            last_step=kept["last_step"],
            metrics={int(rank): tuple(steps) for rank, steps in kept["metrics"].items()},
        )
    return None


def _save(project: Project, path: Path, report: RunReport) -> None:
    """Keep the numbers of a reference; a folder that can't be written only costs time later."""
    kept = {
        "duration_s": report.duration_s,
        "last_step": report.last_step,
        "metrics": {str(rank): list(steps) for rank, steps in report.metrics.items()},
    }
    with suppress(OSError):
        prepare_state_dir(project)
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(kept), encoding="utf-8")
        partial.replace(path)
