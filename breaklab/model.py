"""The nouns of breaklab as frozen values: what a spec, a lab, a run and a proof consist of.

Imports nothing but the standard library, so that every layer may use these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

LANGUAGES = ("en", "es")


@dataclass(frozen=True)
class Text:
    """A text in one or more languages; a missing language falls back to another one."""

    by_language: Mapping[str, str]

    def get(self, language: str) -> str:
        """Return the text in ``language``, else in English, else in whichever there is."""
        for key in (language, *LANGUAGES):
            if self.by_language.get(key):
                return self.by_language[key]
        return next(iter(self.by_language.values()), "")


class Outcome(StrEnum):
    """What a run turned out to be."""

    HEALTHY = "healthy"
    STALL = "stall"  # no rank makes progress any more
    CRASH = "crash"
    DIVERGED = "diverged"  # ranks disagree with each other
    WRONG = "wrong"  # ranks agree, but not with the reference
    SLOW = "slow"  # right, but more communication or work than the reference


class Action(StrEnum):
    """What an injection does at its site."""

    REPLACE_WITH = "replace_with"
    INSERT_BEFORE = "insert_before"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"
    MOVE_BEFORE = "move_before"
    MOVE_AFTER = "move_after"


@dataclass(frozen=True)
class Injection:
    """Where and how a break changes the source.

    Either a pattern (``find`` with an ``action``) or a Python codemod (``codemod``), never both.
    ``code`` holds the new code for replace and insert, the anchor pattern for a move, ``""`` for
    delete. ``line`` and ``column`` locate the ``inject`` mapping in the spec, for errors.
    """

    file: str  # relative to the lab's root, inside the lab's source
    inside: str = ""  # ``function``, ``Class.method`` or ``""`` for the whole module
    find: str = ""
    action: Action = Action.REPLACE_WITH
    code: str = ""
    codemod: str = ""  # ``codemods/x.py:Class``, relative to the pack
    pack: str = ""  # the folder of the spec
    trusted: bool = False  # whether its codemod may run: the project's own, or trusted by hand
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class RunPromise:
    """One variant: arguments for the training entrypoint and the outcome the spec promises."""

    variant: str
    outcome: Outcome
    args: tuple[str, ...] = ()
    num_ranks: int | None = None  # None: the lab's default
    at_step: int | None = None  # the last step any rank reached
    output: str = ""  # text that some rank's output contains
    fault: str = ""  # as for ``run --fault``


@dataclass(frozen=True)
class BreakSpec:
    """One deliberate, reversible bug, as its YAML file declares it."""

    path: Path
    bug_id: str  # ``35-01``
    slug: str
    family: str
    concept: Text
    symptom: Text
    hidden_cause: Text
    hints: tuple[Text, ...]
    lesson: Text
    sources: tuple[str, ...]
    inject: Injection
    fix_diff: str
    red: tuple[str, ...]  # pytest node ids, relative to the project root
    runs: tuple[RunPromise, ...]
    difficulty: int = 1  # 1 (first contact) to 5
    prerequisites: tuple[str, ...] = ()  # bug ids
    waive: Mapping[str, str] = field(default_factory=dict)  # rule id -> reason
    lab: str = ""  # name of the lab; "": the one whose source holds the file
    lines: Mapping[str, int] = field(default_factory=dict)  # key path -> line in the YAML file
    columns: Mapping[str, int] = field(default_factory=dict)  # key path -> column, from 1


@dataclass(frozen=True)
class RetiredSpec:
    """A bug id that was used once and never will be again."""

    path: Path
    bug_id: str
    reason: str


@dataclass(frozen=True)
class Metrics:
    """How a lab reports numbers per rank and step, as JSON lines, one file for each rank.

    ``args`` are appended to the entrypoint's arguments with ``{dir}`` replaced by a folder; each
    rank then writes ``{dir}/rank{rank}.jsonl``, one object for each step, with at least ``step``.
    """

    args: tuple[str, ...]
    agree: tuple[str, ...] = ()  # keys whose values must be equal on all ranks, else `diverged`
    compare: tuple[str, ...] = ()  # keys compared with the reference run, else `wrong`
    count: tuple[str, ...] = ()  # keys that may not exceed the reference's, else `slow`
    tolerance: float = 1e-5  # relative, for `compare`
    curves: tuple[str, ...] = ()  # keys that `breaklab compare` shows; (): every number
    sketch: str = ""  # key of a list of numbers, linear in the parameters, that keeps distances


@dataclass(frozen=True)
class Entrypoint:
    """How a lab's training starts: ``python -m module args`` on each rank."""

    module: str  # either a module ...
    script: str = ""  # ... or a file relative to the lab's root
    args: tuple[str, ...] = ()
    num_ranks: int = 2


@dataclass(frozen=True)
class Lab:
    """A source tree that trains, its tests, and how to run both."""

    root: Path  # folder of lab.yaml
    name: str
    title: Text
    source: Path  # absolute; the only tree a break may change; on sys.path when the lab runs
    tests: Path  # absolute; must stay untouched
    entrypoint: Entrypoint
    step_line: str  # regular expression with a group `step`
    metrics: Metrics | None = None
    preload: tuple[str, ...] = ()  # modules the warm parent imports; never the lab's own
    python: str = ""  # interpreter; "": ours
    journal: str = ""  # path with ``{learner}``, relative to the project root
    collectives: tuple[str, ...] = ()  # patterns of its own names, for `breaklab suggest`


@dataclass(frozen=True)
class Project:
    """The folder with ``[tool.breaklab]``: its labs and its packs of breaks."""

    root: Path
    labs: tuple[Path, ...]  # folders that hold a lab.yaml
    breaks: tuple[Path, ...]  # folders that hold specs

    @property
    def state_dir(self) -> Path:
        """Where breaklab keeps its state for this project."""
        return self.root / ".breaklab"
