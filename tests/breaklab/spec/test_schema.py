"""The schema that editors use says what the loader says."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import fastjsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breaklab.errors import SpecError
from breaklab.spec.breaks import INJECT_KEYS, RUN_KEYS, SPEC_KEYS, load_spec
from breaklab.spec.schema import EDITOR_LINE, spec_schema, spec_schema_text

BREAKS = Path(__file__).parents[3] / "breaks"
LOADER_ONLY = {"variant"}  # what a schema can't say
BASE = {
    "format": 1,
    "bug-id": "35-01",
    "slug": "short-shard",
    "family": "sharding",
    "concept": {"en": "a", "es": "b"},
    "symptom": "a",
    "hidden_cause": "a",
    "lesson": "a",
    "hints": ["a", {"en": "b"}],
    "sources": ["a/b#1"],
    "inject": {"file": "src/a.py", "inside": "f", "find": "x", "delete": True},
    "fix_diff": "x",
    "expect": {"red": ["t.py::t"], "runs": [{"variant": "a", "outcome": "stall"}]},
    "difficulty": 2,
    "waive": {"R1": "a"},
}
KEYS = [*SPEC_KEYS, *INJECT_KEYS, *RUN_KEYS, "en", "es", "fr", "red", "runs", "R1", "R5", "zzz"]
VALUES = st.sampled_from(
    [
        *("", " ", "x", "35-01", "35-02", "true", "stall", "codemods/a.py:A", "../x", "/x", "1"),
        *(0, 1, 2, 5, 6, 64, 65, 1.5, True, False, None, [], ["x"], [""], [1], [None], {}),
        *({"en": "x"}, {"es": ""}, {"fr": "x"}, {"variant": "b", "outcome": "wrong"}),
        *({"file": "a.py", "codemod": "codemods/a.py:A"}, {"file": "a.py", "find": "x"}),
        *({"red": []}, {"R2": "x"}, [{"variant": "b", "outcome": "wrong", "args": [1]}]),
    ]
)


def places(value, path=()):
    """Every path into nested mappings and lists."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from places(inner, (*path, key))


def changed(document, path, change):
    document = copy.deepcopy(document)
    *outer, last = path
    holder = document
    for key in outer:
        holder = holder[key]
    change(holder, last)
    return document


@st.composite
def documents(draw):
    """The base with a few keys removed, added, or given another value."""
    document = copy.deepcopy(BASE)
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([path for path in places(document) if path]))
        kind = draw(st.sampled_from(["remove", "set", "add"]))
        value = copy.deepcopy(draw(VALUES))
        key = draw(st.sampled_from(KEYS))

        def change(holder, last, kind=kind, value=value, key=key):
            if kind == "remove":
                del holder[last]
            elif kind == "add" and isinstance(holder, dict):
                holder[key] = value
            else:
                holder[last] = value

        document = changed(document, path, change)
    return document


validate = fastjsonschema.compile(spec_schema())


def schema_accepts(document):
    try:
        validate(document)
    except fastjsonschema.JsonSchemaException as error:
        return False, str(error)
    return True, ""


def loader_accepts(document, folder):
    path = folder / "x.yaml"
    path.write_text(yaml.dump(document, Dumper=NoAliases, sort_keys=False))
    try:
        load_spec(path)
    except SpecError as error:
        return {f.rule for f in error.findings} <= LOADER_ONLY, str(error)
    return True, ""


class NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def test_base_is_accepted_by_both(tmp_path):
    assert schema_accepts(BASE) == loader_accepts(BASE, tmp_path) == (True, "")


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(document=documents())
def test_schema_and_loader_agree(document, tmp_path):
    by_schema, schema_reason = schema_accepts(document)
    by_loader, loader_reason = loader_accepts(document, tmp_path)
    assert by_schema == by_loader, f"schema: {schema_reason}\nloader: {loader_reason}"


def test_schema_knows_exactly_the_loaders_keys():
    spec = spec_schema()["oneOf"][1]["properties"]
    assert {*spec, "retired"} == set(SPEC_KEYS)
    assert set(spec["inject"]["properties"]) == set(INJECT_KEYS)
    assert set(spec["expect"]["properties"]["runs"]["items"]["properties"]) == set(RUN_KEYS)


def test_every_key_of_a_spec_has_a_description():
    for key, schema in spec_schema()["oneOf"][1]["properties"].items():
        assert key == "bug-id" or schema.get("description") or "properties" in schema, key


def test_schema_file_of_this_repository_is_up_to_date():
    assert (BREAKS / "schema.json").read_text() == spec_schema_text()
    assert json.loads(spec_schema_text()) == spec_schema()


@pytest.mark.parametrize("path", sorted(BREAKS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_spec_of_this_repository_fits_and_names_the_schema(path):
    text = path.read_text()
    assert text.startswith(EDITOR_LINE + "\n")
    assert schema_accepts(yaml.safe_load(text)) == (True, "")
