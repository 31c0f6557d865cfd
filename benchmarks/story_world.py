"""A learner's project as a story sees it, and the invariants that hold after every command.

State is read from the disk by this file's own code, not by breaklab's.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import random
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

RECORDS = ("active.json", "applying.json")


@dataclass(frozen=True)
class Record:
    """The bytes on both sides of a break."""

    pristine: bytes
    broken: bytes


@dataclass(frozen=True)
class Snapshot:
    """What lies on the disk at one moment."""

    source: bytes | None  # None: there is no such file
    saved: dict[str, bytes]
    records: dict[str, Record]
    untouched: bool  # an apply was killed before it changed the source

    @property
    def active(self) -> Record | None:
        """The break in force."""
        return self.records.get("active.json")

    @property
    def known(self) -> set[bytes | None]:
        """All bytes that the learner can get back without breaklab's help, or with `revert`."""
        pristine = {record.pristine for record in self.records.values()}
        return {self.source, *self.saved.values()} | pristine


@dataclass
class World:
    """One copy of a project, and the person who edits its source."""

    root: Path
    source: Path
    num_edits: int = 0
    problems: list[str] = field(default_factory=list)

    def look(self) -> Snapshot:
        """Read everything from the disk."""
        state = self.root / ".breaklab"
        saved = state / "saved"
        return Snapshot(
            source=self.source.read_bytes() if self.source.is_file() else None,
            saved={path.name: path.read_bytes() for path in saved.iterdir()}
            if saved.exists()
            else {},
            records={name: _record(state / name) for name in RECORDS if (state / name).exists()},
            untouched=self.source.with_name(".breaklab.tmp").exists(),
        )

    def edit(self, rng: random.Random) -> str:
        """Do what learners do to a source; return what it was."""
        before = self.look()
        choices = [self._note, self._note, self._note]
        if before.active and before.source is not None:
            choices += [self._fix, self._fix_otherwise, self._fix_otherwise]
        if before.source is not None and rng.random() < 0.15:
            choices = [self._delete, self._chmod]
        chosen = rng.choice(choices)
        chosen(rng, before)
        return chosen.__name__.strip("_")

    def _note(self, rng: random.Random, before: Snapshot) -> None:
        lines = (before.source or b"").splitlines(keepends=True)
        self.num_edits += 1
        lines.insert(rng.randint(0, len(lines)), f"# note {self.num_edits}\n".encode())
        self._save(b"".join(lines))

    def _fix(self, _rng: random.Random, before: Snapshot) -> None:
        assert before.active
        self._save(before.active.pristine)

    def _fix_otherwise(self, rng: random.Random, before: Snapshot) -> None:
        """Change one of the lines that the break changed."""
        assert before.active
        assert before.source is not None
        matcher = difflib.SequenceMatcher(
            None, before.active.pristine.splitlines(), before.active.broken.splitlines()
        )
        spans = [(low, high) for tag, *_, low, high in matcher.get_opcodes() if tag != "equal"]
        lines = before.source.splitlines(keepends=True)
        low, high = rng.choice(spans or [(0, 1)])
        at = min(rng.randint(low, max(low, high - 1)), len(lines) - 1)
        self.num_edits += 1
        if at >= 0:
            mine = f"  # my fix {self.num_edits}\n".encode()
            lines[at] = lines[at].rstrip(b"\n").partition(b"  # my fix")[0] + mine
        self._save(b"".join(lines))

    def _delete(self, _rng: random.Random, _before: Snapshot) -> None:
        self.source.unlink()

    def _chmod(self, rng: random.Random, _before: Snapshot) -> None:
        self.source.chmod(rng.choice([0o644, 0o600, 0o755]))

    def _save(self, content: bytes) -> None:
        """Save as many editors do: write beside, rename."""
        beside = self.source.with_name(self.source.name + "~")
        beside.write_bytes(content)
        beside.replace(self.source)

    # --- what must hold

    def check_step(self, before: Snapshot, recovered: bool) -> list[str]:
        """Compare with what was there before one command, and before its recovery."""
        after, problems = self.look(), []
        record = before.active
        if record is None and not before.untouched:
            record = before.records.get("applying.json")
        merged = _merge(record, before.source) if record else None
        if not _may_be(before, after, merged):
            problems.append("the source holds bytes that nobody asked for")
        lost = before.source is not None and before.source not in after.known
        if lost and not _is_broken(before):
            problems.append("LOST: what was in the source is nowhere any more")
        # After a merge the pristine bytes live on in what git made of them.
        if record and not {record.pristine, merged} & (after.known - {None}):
            problems.append("LOST: the pristine bytes are nowhere any more")
        for name, content in before.saved.items():
            if after.saved.get(name) != content:
                problems.append(f"LOST: the saved copy {name}")
        if recovered:
            problems += [f"left half done: {name}" for name in self.left_over()]
        return problems

    def left_over(self) -> list[str]:
        """Names of temporary files, and of state that only a command at work may have."""
        state = self.root / ".breaklab"
        half_done = [state / "applying.json", state / "reverting.json"]
        temporary = [path for path in self.root.rglob("*") if path.name.endswith(".tmp")]
        return [str(path) for path in [*half_done, *temporary] if path.exists()]


def _is_broken(before: Snapshot) -> bool:
    """Whether the source held only what breaklab itself had put there."""
    return any(before.source == record.broken for record in before.records.values())


def _may_be(before: Snapshot, after: Snapshot, merged: bytes | None) -> bool:
    records = [*before.records.values(), *after.records.values()]
    allowed = {before.source, merged} | {record.pristine for record in records}
    return after.source in allowed | {record.broken for record in records}


def _record(path: Path) -> Record:
    value = json.loads(path.read_bytes())
    return Record(base64.b64decode(value["pristine"]), base64.b64decode(value["broken"]))


def _merge(record: Record, ours: bytes | None) -> bytes | None:
    """Return what git makes of the learner's and the pristine bytes; None on a conflict."""
    if ours is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for name, content in (
            ("ours", ours),
            ("base", record.broken),
            ("theirs", record.pristine),
        ):
            (Path(folder) / name).write_bytes(content)
            names.append(name)
        done = subprocess.run(
            ["git", "merge-file", "-p", *names],
            cwd=folder,
            capture_output=True,
            check=False,
            env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)},
        )
    return done.stdout if done.returncode == 0 else None
