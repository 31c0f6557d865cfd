"""Candidates for breaks in a whole lab: every change that some operator makes of its source."""

from __future__ import annotations

import difflib
import hashlib
import json
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breaklab.errors import ProjectError
from breaklab.i18n import _
from breaklab.inject.operators.candidates import (
    OPERATORS,
    Candidate,
    candidates_in,
    lab_words,
)
from breaklab.model import Lab, Project
from breaklab.tree.atomic import os_errors_told
from breaklab.tree.digest import tests_digest


@dataclass(frozen=True)
class Choice:
    """Which candidates are wanted.

    Attributes:
        files: ends of paths, as ``trainer.py``; none: all files.
        operators: their names; none: all.
        keys: the candidates themselves; none: all.
        collectives: patterns of names beside the usual ones and those in the manifest.
        limit: at most so many, drawn at random; 0: all.
        seed: of that draw.
    """

    files: Sequence[str] = ()
    operators: Sequence[str] = ()
    keys: Sequence[str] = ()
    collectives: Sequence[str] = ()
    limit: int = 0
    seed: int = 0


def mine(
    project: Project, lab: Lab, choice: Choice, overlay: Mapping[str, bytes]
) -> list[Candidate]:
    """Return the candidates in a lab's source, by file and line; nothing is run.

    Args:
        project: where the lab lives.
        lab: the lab.
        choice: which of them.
        overlay: pristine bytes by path relative to the project's root, where the tree has others.

    Raises:
        ProjectError: there is no such file, operator or key.
        SiteError: a source is no Python.
    """
    for name in choice.operators:
        if name not in OPERATORS:
            raise _unknown(_("there is no operator {name}"), name, OPERATORS)
    sources = _sources(project, lab, overlay)
    for name in choice.files:
        if not any(_is_named(file, [name]) for file in sources):
            known = {Path(file).name for file in sources}
            raise _unknown(_("the lab's source has no file {name}"), name, known)
    words = lab_words(sources, (*lab.collectives, *choice.collectives))
    found = [
        candidate
        for file, source in sources.items()
        if not choice.files or _is_named(file, choice.files)
        for candidate in candidates_in(source, file, words, choice.operators)
    ]
    if choice.keys:
        by_key = {candidate.key: candidate for candidate in found}
        for key in choice.keys:
            if key not in by_key:
                raise _unknown(_("there is no candidate {name}"), key, by_key)
        found = [by_key[key] for key in dict.fromkeys(choice.keys)]
    if choice.limit and choice.limit < len(found):
        drawn = random.Random(choice.seed).sample(range(len(found)), choice.limit)
        found = [found[index] for index in sorted(drawn)]
    return found


@dataclass(frozen=True)
class Record:
    """Results on disk, a line of JSON for each, so that a call that is interrupted loses none.

    What other tests found does not count, nor a list of red tests that ended at the first one
    where all are wanted.
    """

    path: Path
    tests: str  # a digest of the lab's tests
    first_red: bool

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the results by the candidates' keys; nothing where there is no file yet.

        Raises:
            ProjectError: the file is no such record.
        """
        if not self.path.exists():
            return {}
        try:
            with os_errors_told(self.path):
                lines = self.path.read_text(encoding="utf-8").splitlines()
            found = {}
            for entry in [json.loads(line) for line in lines if line.strip()]:
                full_enough = self.first_red or not entry["first_red"]
                if entry["tests"] == self.tests and full_enough:
                    found[entry["row"]["key"]] = dict(entry["row"])
            return found
        except (ValueError, KeyError, TypeError) as error:
            message = _("{path} is no record of `breaklab suggest`").format(path=self.path)
            raise ProjectError(message) from error

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one result.

        Raises:
            TreeError: the file can't be written.
        """
        entry = {"tests": self.tests, "first_red": self.first_red, "row": row}
        with os_errors_told(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def record_at(path: Path, project: Project, lab: Lab, *, first_red: bool) -> Record:
    """Return the record in a file, as it counts with the tests that the lab has now."""
    digests = json.dumps(tests_digest(project, lab), sort_keys=True)
    return Record(path, hashlib.sha256(digests.encode()).hexdigest()[:16], first_red)


def _sources(project: Project, lab: Lab, overlay: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the lab's source by path relative to its root, without what are its tests."""
    sources = {}
    for path in sorted(lab.source.rglob("*.py")):
        hidden = any(part.startswith(".") for part in path.relative_to(lab.source).parts)
        if hidden or "site-packages" in path.parts or path.is_relative_to(lab.tests):
            continue
        name = path.relative_to(project.root).as_posix()
        with os_errors_told(path):
            content = overlay.get(name) or path.read_bytes()
        sources[path.relative_to(lab.root).as_posix()] = content
    return sources


def _is_named(file: str, names: Collection[str]) -> bool:
    return any(f"/{file}".endswith(f"/{name.removeprefix('./')}") for name in names)


def _unknown(message: str, name: str, known: Iterable[str]) -> ProjectError:
    near = difflib.get_close_matches(name, list(known), n=3)
    hint = _("did you mean {names}?").format(names=", ".join(near)) if near else ""
    return ProjectError(message.format(name=name), hint=hint)
