"""From a spec's YAML to a :class:`BreakSpec`, or every reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from breaklab.errors import Location
from breaklab.i18n import _
from breaklab.model import Action, BreakSpec, Injection, Outcome, RetiredSpec, RunPromise, Text
from breaklab.spec.reader import Fields, Reader

FORMAT = 1
BUG_ID = re.compile(r"\d{1,4}-\d{2,4}")
CODEMOD = re.compile(r"codemods/[\w-]+\.py:[A-Za-z_]\w*")
RULES = ("R1", "R2", "R4", "R6", "R7", "R8")  # that a spec may waive; the others always hold
TEXT_KEYS = ("concept", "symptom", "hidden_cause", "lesson")
NUMBERED_HINTS = tuple(f"hint_{level}" for level in range(1, 10))
SPEC_KEYS = (
    *("format", "bug-id", "slug", "family", "lab", "difficulty", "prerequisites"),
    *TEXT_KEYS,
    *("hints", "sources", "inject", "fix_diff", "expect", "waive", "retired"),
    *NUMBERED_HINTS,
)
REQUIRED = ("format", "bug-id", "slug", "family", *TEXT_KEYS, "sources", "inject", "expect")
INJECT_KEYS = ("file", "inside", "find", *(action.value for action in Action), "codemod")
RUN_KEYS = ("variant", "args", "outcome", "at_step", "output", "num_ranks", "fault")


def load_spec(path: Path) -> BreakSpec | RetiredSpec:
    """Read one spec.

    Raises:
        SpecError: with every finding: file, line, column, what was found and what is wanted.
    """
    reader = Reader(path)
    fields = reader.fields(reader.root, SPEC_KEYS)
    reader.format(fields.get("format"), FORMAT)
    bug_id = _bug_id(reader, fields.get("bug-id"), "bug-id")
    if "retired" in fields:
        reason = reader.string(fields["retired"], "retired")
        reader.finish()
        return RetiredSpec(path, bug_id, reason)
    for key in REQUIRED:
        if key not in fields:
            reader.add(reader.root, "missing-key", _("the key `{key}` is missing").format(key=key))
    spec = _spec(reader, fields, bug_id)
    reader.finish()
    return spec


def place_of(spec: BreakSpec, key: str) -> Location:
    """Return where the value of a key path, such as ``expect.red[0]``, stands in its file."""
    return Location(str(spec.path), spec.lines.get(key, 1), spec.columns.get(key, 1))


def _spec(reader: Reader, fields: Fields, bug_id: str) -> BreakSpec:
    expect = _mapping(reader, fields.get("expect"), "expect", ("red", "runs"), ("red",))
    texts = {key: reader.text(fields.get(key), key) for key in TEXT_KEYS}
    marks = dict(_marks(reader.root, ""))
    return BreakSpec(
        path=reader.path,
        bug_id=bug_id,
        slug=reader.string(fields.get("slug"), "slug"),
        family=reader.string(fields.get("family"), "family"),
        concept=texts["concept"],
        symptom=texts["symptom"],
        hidden_cause=texts["hidden_cause"],
        hints=_hints(reader, fields),
        lesson=texts["lesson"],
        sources=reader.strings(fields.get("sources"), "sources"),
        inject=_injection(reader, fields.get("inject")),
        fix_diff=reader.string(fields.get("fix_diff"), "fix_diff"),
        red=reader.strings(expect.get("red"), "expect.red"),
        runs=_runs(reader, expect.get("runs")),
        difficulty=reader.integer(fields.get("difficulty"), "difficulty", 1, 5) or 1,
        prerequisites=reader.items(
            fields.get("prerequisites"),
            "prerequisites",
            lambda node, what: _bug_id(reader, node, what),
        ),
        waive=_waivers(reader, fields.get("waive")),
        lines={key: mark.line + 1 for key, mark in marks.items()},
        columns={key: mark.column + 1 for key, mark in marks.items()},
        lab=reader.string(fields.get("lab"), "lab"),
    )


def _marks(node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.Mark]]:
    """Yield each key path, such as ``expect.red[0]``, with where its value begins."""
    if path:
        yield path, node.start_mark
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _marks(value, f"{path}.{key.value}" if path else str(key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _marks(value, f"{path}[{index}]")


def _mapping(
    reader: Reader,
    node: yaml.Node | None,
    what: str,
    known: tuple[str, ...],
    required: tuple[str, ...] = (),
) -> Fields:
    return reader.fields(node, known, required, what) if node is not None else {}


def _bug_id(reader: Reader, node: yaml.Node | None, what: str) -> str:
    bug_id = reader.string(node, what)
    if node is not None and bug_id and not BUG_ID.fullmatch(bug_id):
        message = _("`{what}` is `{bug_id}`; it must look like 35-01").format(
            what=what, bug_id=bug_id
        )
        reader.add(node, "bug-id", message)
    return bug_id


def _hints(reader: Reader, fields: Fields) -> tuple[Text, ...]:
    """Return the hints in order, from ``hints`` or from ``hint_1`` and so on, never both."""
    numbered = {int(key[-1]): key for key in fields if key in NUMBERED_HINTS}
    listed = fields.get("hints")
    if listed is not None and numbered:
        node = fields[numbered[min(numbered)]]
        reader.add(node, "hints", _("give either `hints` or `hint_1`, `hint_2`, ..., not both"))
    if listed is None and not numbered:
        reader.add(reader.root, "missing-key", _("the key `{key}` is missing").format(key="hints"))
    if listed is not None:
        hints = reader.items(listed, "hints", reader.text)
        if not hints:
            reader.add(listed, "empty", _("`{what}` is empty").format(what="hints"))
        return hints
    if sorted(numbered) != list(range(1, len(numbered) + 1)):
        node = fields[numbered[max(numbered)]]
        reader.add(node, "hints", _("hint levels must be 1, 2, 3, ... without a gap"))
    return tuple(reader.text(fields[numbered[n]], numbered[n]) for n in sorted(numbered))


def _injection(reader: Reader, node: yaml.Node | None) -> Injection:
    fields = _mapping(reader, node, "inject", INJECT_KEYS, ("file",))
    if node is None or not fields:
        return Injection(file="")
    actions = [action for action in Action if action.value in fields]
    if "codemod" in fields:
        if "find" in fields or actions:
            reader.add(node, "inject", _("give either `codemod` or `find` with an action"))
    elif "find" not in fields or len(actions) != 1:
        message = _("`inject` needs `find` and exactly one action; it has {found}").format(
            found=", ".join(key for key in fields if key not in ("file", "inside")) or _("neither")
        )
        hint = _("actions: {known}").format(known=", ".join(action.value for action in Action))
        reader.add(node, "inject", message, hint)
    action = actions[0] if actions else Action.REPLACE_WITH
    return Injection(
        file=_inside_lab(reader, fields.get("file")),
        inside=reader.string(fields.get("inside"), "inject.inside"),
        find=reader.string(fields.get("find"), "inject.find"),
        action=action,
        code=_code(reader, fields.get(action.value), action),
        codemod=_codemod(reader, fields.get("codemod")),
        pack=str(reader.path.parent),
        line=node.start_mark.line + 1,
        column=node.start_mark.column + 1,
    )


def _inside_lab(reader: Reader, node: yaml.Node | None) -> str:
    file = reader.string(node, "inject.file")
    parts = file.replace("\\", "/").split("/")
    if node is not None and (file.startswith("/") or ".." in parts or "\0" in file):
        message = _("`inject.file` is `{file}`; it must be relative to the lab and stay inside it")
        reader.add(node, "path", message.format(file=file))
    return file


def _codemod(reader: Reader, node: yaml.Node | None) -> str:
    codemod = reader.string(node, "inject.codemod")
    if node is not None and not CODEMOD.fullmatch(codemod):
        message = _("`inject.codemod` is `{codemod}`; it must look like codemods/x.py:Class")
        reader.add(node, "codemod", message.format(codemod=codemod))
    return codemod


def _code(reader: Reader, node: yaml.Node | None, action: Action) -> str:
    """Return the new code; ``delete: true`` needs none."""
    if node is None:
        return ""
    if action is Action.DELETE:
        if node.value != "true":
            message = _("`inject.delete` is `{value}`; it must be `true`: `find` says what goes")
            reader.add(node, "type", message.format(value=node.value))
        return ""
    return reader.string(node, f"inject.{action.value}")


def _runs(reader: Reader, node: yaml.Node | None) -> tuple[RunPromise, ...]:
    runs = reader.items(node, "expect.runs", lambda item, what: _run(reader, item, what))
    names = [run.variant for run in runs]
    if node is not None and len(set(names)) < len(names):
        reader.add(node, "variant", _("two variants have the same name"))
    return runs


def _run(reader: Reader, node: yaml.Node, what: str) -> RunPromise:
    fields = reader.fields(node, RUN_KEYS, ("variant", "outcome"), what)
    outcome = reader.choice(fields.get("outcome"), f"{what}.outcome", [o.value for o in Outcome])
    return RunPromise(
        variant=reader.string(fields.get("variant"), f"{what}.variant"),
        outcome=Outcome(outcome),
        args=reader.strings(fields.get("args"), f"{what}.args"),
        num_ranks=reader.integer(fields.get("num_ranks"), f"{what}.num_ranks", 1, 64),
        at_step=reader.integer(fields.get("at_step"), f"{what}.at_step", 0, 10**9),
        output=reader.string(fields.get("output"), f"{what}.output"),
        fault=reader.string(fields.get("fault"), f"{what}.fault"),
    )


def _waivers(reader: Reader, node: yaml.Node | None) -> dict[str, str]:
    fields = _mapping(reader, node, "waive", RULES)
    return {rule: reader.string(reason, f"waive.{rule}") for rule, reason in fields.items()}
