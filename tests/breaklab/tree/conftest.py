from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from breaklab.model import Entrypoint, Lab, Project, Text
from breaklab.tree.workspace import RevertHow, RevertReport, Workspace

PRISTINE = b"""import math


def shard_indices(samples, rank, world_size):
    shards = split(samples, world_size)
    shard = shards[rank]
    return shard


def mean(values):
    total = sum(values)
    return total / len(values)


def split(samples, parts):
    return [samples[part::parts] for part in range(parts)]
"""
SITE = b"    shard = shards[rank]\n"
ADDED = b"    if rank == 0:\n        shard = shard[:-1]\n"
BROKEN = PRISTINE.replace(SITE, SITE + ADDED)


@dataclass
class Learner:
    """A project with one lab, and the learner who works in it."""

    project: Project
    lab: Lab
    source: Path
    pristine: bytes = PRISTINE
    broken: bytes = BROKEN

    def apply(self, bug_id: str = "35-01", *, hidden: bool = False) -> None:
        with Workspace.open(self.project) as workspace:
            workspace.apply(self.lab, bug_id, self.source, self.broken, hidden=hidden)

    def revert(self, how: RevertHow = RevertHow.MERGE) -> RevertReport:
        with Workspace.open(self.project) as workspace:
            return workspace.revert(how)

    def edit(self, old: bytes, new: bytes) -> bytes:
        content = self.source.read_bytes()
        assert old in content
        self.source.write_bytes(content.replace(old, new, 1))
        return self.source.read_bytes()

    def saved(self) -> dict[str, bytes]:
        folder = self.project.state_dir / "saved"
        paths = sorted(folder.iterdir()) if folder.exists() else []
        return {path.name: path.read_bytes() for path in paths}

    def left_over(self) -> list[str]:
        """Every file of the project that neither the learner nor the state owns."""
        own = {"schema.json", "events.jsonl", "lock", "holder.json", ".gitignore", "active.json"}
        return [
            str(path.relative_to(self.project.root))
            for path in sorted(self.project.root.rglob("*"))
            if path.is_file()
            and path.name not in own
            and path != self.source
            and "tests" not in path.parts
            and path.parent.name != "saved"
        ]


def make_learner(
    root: Path,
    pristine: bytes = PRISTINE,
    broken: bytes = BROKEN,
    *,
    name: str = "dataloader.py",
) -> Learner:
    lab_root = root / "labs" / "tiny"
    package = lab_root / "src" / "tiny"
    tests = root / "tests" / "tiny"
    package.mkdir(parents=True)
    tests.mkdir(parents=True)
    (tests / "test_tiny.py").write_bytes(b"def test_one():\n    pass\n")
    source = package / name
    source.write_bytes(pristine)
    lab = Lab(
        root=lab_root,
        name="tiny",
        title=Text({"en": "Tiny"}),
        source=lab_root / "src",
        tests=tests,
        entrypoint=Entrypoint(module="tiny.train"),
        step_line="",
    )
    return Learner(Project(root, (lab_root,), ()), lab, source, pristine, broken)


@pytest.fixture(scope="session")
def new_learner() -> Callable[..., Learner]:
    """Make a learner with other bytes, another file name, or another place."""
    return make_learner


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    return make_learner(tmp_path / "project")
