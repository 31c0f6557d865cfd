"""Scratch copies: a lab and its tests, pristine, in a folder that nobody else uses.

Proofs and reference runs happen here, so the learner's tree is neither needed clean nor changed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from breaklab.model import Lab, Project
from breaklab.ranks.jobs import TestJob

TESTS_TIMEOUT_S = 600.0  # of a whole suite; a test that hangs has its own, shorter limit

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "venv", "__pycache__", "*.pyc", ".breaklab", ".*_cache", "node_modules"
)


@dataclass(frozen=True)
class Scratch:
    """A copied project: only the lab and its tests, at the same places relative to the root."""

    project: Project
    lab: Lab

    def path(self, relative: str | Path) -> Path:
        """Return a path of the copy from one relative to the project's root."""
        return self.project.root / relative

    def tests(self, targets: tuple[str, ...] = (), *, trace_lines: bool = False) -> TestJob:
        """Return the job that runs the lab's tests here, or only the node ids in ``targets``."""
        root = self.project.root
        everything = (self.lab.tests.relative_to(root).as_posix(),)
        return TestJob(
            root,
            self.lab.source,
            targets or everything,
            timeout_s=TESTS_TIMEOUT_S,
            trace_lines=trace_lines,
        )


@contextmanager
def scratch_copy(
    project: Project,
    lab: Lab,
    *,
    overlay: Mapping[str, bytes] | None = None,
    parent: Path | None = None,
) -> Iterator[Scratch]:
    """Copy ``lab`` and its tests to a temporary folder, which is removed at the end.

    Args:
        project: the project that the lab belongs to.
        lab: what to copy: its root folder, its source and its tests.
        overlay: bytes that replace files of the copy, by path relative to the project's root; the
            pristine bytes of a source that has a break applied in the learner's tree.
        parent: the folder to make the copy in: the warm parent's own, which ends with it even
            when breaklab is killed. None: the system's temporary folder.
    """
    with tempfile.TemporaryDirectory(
        prefix="breaklab-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder).resolve()
        for original in _trees(project, lab):
            relative = original.relative_to(project.root)
            shutil.copytree(
                original, root / relative, ignore=_LEFT_OUT, symlinks=True, dirs_exist_ok=True
            )
        _copy_conftests(project.root, lab.tests, root)
        for relative_path, content in (overlay or {}).items():
            (root / relative_path).write_bytes(content)
        yield Scratch(_project_at(project, root), _lab_at(project, lab, root))


def _trees(project: Project, lab: Lab) -> list[Path]:
    """Return the folders to copy: the lab's root, and source and tests where they lie outside."""
    trees = [lab.root]
    for tree in (lab.source, lab.tests):
        if not any(tree.is_relative_to(known) for known in trees):
            trees.append(tree)
    return [tree for tree in trees if tree.is_relative_to(project.root)]


def _copy_conftests(project_root: Path, tests: Path, root: Path) -> None:
    """Copy the conftest.py files above the tests: pytest would have read them, too."""
    for folder in tests.parents:
        conftest = folder / "conftest.py"
        if conftest.is_file():
            target = root / conftest.relative_to(project_root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(conftest, target)
        if folder == project_root:
            break


def _project_at(project: Project, root: Path) -> Project:
    return Project(
        root=root,
        labs=tuple(root / lab.relative_to(project.root) for lab in project.labs),
        breaks=(),
    )


def _lab_at(project: Project, lab: Lab, root: Path) -> Lab:
    return replace(
        lab,
        root=root / lab.root.relative_to(project.root),
        source=root / lab.source.relative_to(project.root),
        tests=root / lab.tests.relative_to(project.root),
    )
