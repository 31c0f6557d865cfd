"""The JSON schema of specs, for editors; a test keeps it equal to what the loader accepts.

What a schema can't say, the loader does: that ids are unique, that hint levels have no gap, that a
path stays inside the lab, that code is Python.
"""

from __future__ import annotations

import json
from typing import Any

from breaklab.model import LANGUAGES, Action, Outcome
from breaklab.spec.breaks import (
    BUG_ID,
    CODEMOD,
    FORMAT,
    INJECT_KEYS,
    NUMBERED_HINTS,
    REQUIRED,
    RULES,
    RUN_KEYS,
    SPEC_KEYS,
    TEXT_KEYS,
)

EDITOR_LINE = "# yaml-language-server: $schema=schema.json"
_SCALAR = {"type": ["string", "number", "boolean"], "pattern": r"\S"}
_STRINGS = {"type": "array", "items": _SCALAR}
_BUG_ID = {"type": "string", "pattern": f"^{BUG_ID.pattern}$"}
_ACTIONS = [action.value for action in Action]


def spec_schema() -> dict[str, Any]:
    """Return the schema of a spec (draft 7), each key with what it is for."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A break of breaklab",
        "oneOf": [_retired(), _break()],
    }


def spec_schema_text() -> str:
    """Return the schema as the text of ``breaks/schema.json``."""
    return json.dumps(spec_schema(), indent=2) + "\n"


def _retired() -> dict[str, Any]:
    return {
        "title": "A bug-id that was used once and never will be again",
        "type": "object",
        "required": ["format", "bug-id", "retired"],
        "properties": {
            "retired": {**_SCALAR, "description": "why"},
            **{key: {} for key in SPEC_KEYS if key not in ("format", "bug-id", "retired")},
            "format": _format(),
            "bug-id": _BUG_ID,
        },
        "additionalProperties": False,
    }


def _break() -> dict[str, Any]:
    properties = {
        "format": _format(),
        "bug-id": {**_BUG_ID, "description": "as 35-01: phase and number; never used twice"},
        "slug": {**_SCALAR, "description": "a short name, as misaligned-shards"},
        "family": {**_SCALAR, "description": "what kind of bug, as sharding"},
        "lab": {**_SCALAR, "description": "name of the lab; default: the one that has the file"},
        "difficulty": _whole(1, 5, "1 (first contact) to 5; default: 1"),
        "prerequisites": {
            "type": "array",
            "items": _BUG_ID,
            "description": "breaks to solve before",
        },
        **{key: _text(_TEXTS[key]) for key in TEXT_KEYS},
        "hints": {
            "type": "array",
            "minItems": 1,
            "items": _text("one hint"),
            "description": "from symptom to cause; never the fix",
        },
        **{key: _text("one hint; or use `hints`") for key in NUMBERED_HINTS},
        "sources": {**_STRINGS, "description": 'where people met it: "owner/repo#1 title"'},
        "inject": _inject(),
        "fix_diff": {**_SCALAR, "description": "written by `breaklab refresh`"},
        "expect": _expect(),
        "waive": {
            "type": "object",
            "properties": {rule: {**_SCALAR, "description": "why"} for rule in RULES},
            "additionalProperties": False,
            "description": "rules that this break may not keep, each with a reason",
        },
    }
    return {
        "title": "A break",
        "type": "object",
        "required": list(REQUIRED),
        "properties": properties,
        "additionalProperties": False,
        "oneOf": [
            {"required": ["hints"], "not": {"anyOf": _each_required(NUMBERED_HINTS)}},
            {"required": ["hint_1"], "not": {"required": ["hints"]}},
        ],
    }


_TEXTS = {
    "concept": "what the learner will have understood, in one sentence",
    "symptom": "what is seen, never why; shown by `apply`",
    "hidden_cause": "why; shown by `reveal` or once solved",
    "lesson": "what to take along; shown once solved",
}


def _format() -> dict[str, Any]:
    return {"const": FORMAT, "description": "of this file; always 1 so far"}


def _whole(low: int, high: int, description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


def _text(description: str) -> dict[str, Any]:
    """Return the schema of a text: one string, or one for each language."""
    by_language = {
        "type": "object",
        "minProperties": 1,
        "properties": dict.fromkeys(LANGUAGES, _SCALAR),
        "additionalProperties": False,
    }
    return {"anyOf": [_SCALAR, by_language], "description": description}


def _inject() -> dict[str, Any]:
    descriptions = {
        "file": "what changes, relative to the lab's root, inside its source",
        "inside": "function, Class.method or outer.inner; default: the whole file",
        "find": "Python, matched as syntax; $NAME is any expression, $$$NAME any number",
        "codemod": "codemods/x.py:Class, where a pattern can't say it",
        **{action: f"new code, with the captures of `find`: {action}" for action in _ACTIONS},
        "move_before": "a pattern: `find` moves before it",
        "move_after": "a pattern: `find` moves behind it",
    }
    properties: dict[str, Any] = {
        key: {**_SCALAR, "description": descriptions[key]} for key in INJECT_KEYS
    }
    properties["delete"] = {"const": True, "description": "what `find` matches goes"}
    properties["codemod"] |= {"type": "string", "pattern": f"^{CODEMOD.pattern}$"}
    properties["file"]["pattern"] = r"^(?!/)(?!.*(^|[/\\])\.\.([/\\]|$)).*\S"
    neither = {"anyOf": _each_required(("find", *_ACTIONS))}
    by_class = {"required": ["codemod"]}
    by_pattern = [{"required": ["find", action], "not": by_class} for action in _ACTIONS]
    return {
        "type": "object",
        "required": ["file"],
        "properties": properties,
        "additionalProperties": False,
        "oneOf": [{**by_class, "not": neither}, *by_pattern],
    }


def _expect() -> dict[str, Any]:
    run: dict[str, Any] = dict.fromkeys(RUN_KEYS, _SCALAR)
    run["args"] = {**_STRINGS, "description": "appended to the entrypoint's arguments"}
    run["outcome"] = {"enum": [outcome.value for outcome in Outcome]}
    run["num_ranks"] = _whole(1, 64, "default: the lab's")
    run["at_step"] = _whole(0, 10**9, "the last step that any rank reached")
    run["output"] = {**_SCALAR, "description": "text that some rank prints"}
    run["fault"] = {**_SCALAR, "description": "as for `run --fault`"}
    return {
        "type": "object",
        "required": ["red"],
        "properties": {
            "red": {**_STRINGS, "description": "all tests that go red, as pytest node ids"},
            "runs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["variant", "outcome"],
                    "properties": run,
                    "additionalProperties": False,
                },
                "description": "ways to run it, and the outcome promised; the first is the default",
            },
        },
        "additionalProperties": False,
    }


def _each_required(keys: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"required": [key]} for key in keys]
