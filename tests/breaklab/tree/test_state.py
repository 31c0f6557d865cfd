"""State that is damaged, from a newer breaklab, or hostile: a clear error, and nothing lost."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breaklab.errors import TreeError
from breaklab.tree.events import Event, append_event, read_events
from breaklab.tree.workspace import RevertHow, Workspace, read_active


def _tree(root: Path) -> dict[str, bytes]:
    """Every file but who holds the lock."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in ("lock", "holder.json")
    }


@pytest.mark.parametrize(
    "act",
    [
        read_active,
        read_events,
        lambda project: append_event(project, "hint", "35-01"),
        lambda project: Workspace.open(project).__enter__(),
    ],
)
def test_a_state_from_a_newer_breaklab_is_refused_and_left_alone(learner, act):
    learner.apply()
    (learner.project.state_dir / "schema.json").write_text('{"schema": 2, "more": []}')
    (learner.project.state_dir / "active.json").write_text('{"another": "shape"}')
    before = _tree(learner.project.root)
    with pytest.raises(TreeError, match="newer breaklab") as caught:
        act(learner.project)
    assert "update breaklab" in caught.value.hint
    assert _tree(learner.project.root) == before


@pytest.mark.parametrize("name", ["active.json", "applying.json", "reverting.json", "schema.json"])
@pytest.mark.parametrize(
    "garbage", [b"", b"\0\xff", b"{", b"[]", b"null", b"{}", b"[" * 100_000, b'"' + b"x" * 100]
)
def test_garbage_in_a_state_file_is_told_with_its_path_and_nothing_is_lost(learner, name, garbage):
    learner.apply()
    path = learner.project.state_dir / name
    path.write_bytes(garbage)
    before = _tree(learner.project.root)
    with pytest.raises(TreeError) as caught, Workspace.open(learner.project) as workspace:
        workspace.revert()
    assert str(path) in caught.value.message
    assert "nothing was changed" in caught.value.message
    assert caught.value.hint
    assert _tree(learner.project.root) == before


def _changed(record: dict[str, object], key: str, value: object) -> bytes:
    return json.dumps(record | {key: value}).encode()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pristine", "not base64!"),
        ("pristine", "QUJD"),  # base64, of other bytes
        ("mode", "rw-r--r--"),
        ("mode", 420),
        ("file", 7),
        ("file", "labs\0tiny"),
        ("tests_digest", []),
        ("tests_digest", {"a": 1}),
        ("bug_id", None),
    ],
)
def test_a_record_with_a_damaged_value_is_refused(learner, key, value):
    learner.apply()
    path = learner.project.state_dir / "active.json"
    path.write_bytes(_changed(json.loads(path.read_bytes()), key, value))
    with pytest.raises(TreeError, match="can't be read"):
        read_active(learner.project)
    assert learner.source.read_bytes() == learner.broken


@pytest.mark.parametrize("file", ["../victim.py", "{absolute}", "labs/tiny/../../../victim.py"])
def test_a_record_that_came_with_a_strangers_project_reaches_no_file_outside(
    learner, tmp_path, file
):
    learner.apply()
    victim = tmp_path / "victim.py"
    path = learner.project.state_dir / "active.json"
    path.write_bytes(_changed(json.loads(path.read_bytes()), "file", file.format(absolute=victim)))
    for how in RevertHow:
        with pytest.raises(TreeError, match="outside the project"):
            learner.revert(how)
    assert not victim.exists()


def test_a_link_planted_in_the_source_does_not_lead_revert_outside(learner, tmp_path):
    learner.apply()
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(learner.source.parent)
    learner.source.parent.symlink_to(outside)
    with pytest.raises(TreeError, match="outside the project"):
        learner.revert(RevertHow.DISCARD)
    assert list(outside.iterdir()) == []


def test_something_else_named_like_the_state_folder_is_told(learner):
    learner.project.state_dir.write_bytes(b"mine")
    assert read_active(learner.project) is None
    with pytest.raises(TreeError, match=r"\.breaklab"):
        learner.apply()
    assert learner.project.state_dir.read_bytes() == b"mine"


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_no_state_file_whatever_its_bytes_makes_a_traceback_or_loses_the_source(new_learner, data):
    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
        ),
        max_leaves=8,
    )
    with tempfile.TemporaryDirectory() as folder:
        learner = new_learner(Path(folder) / "project")
        learner.apply()
        path = learner.project.state_dir / data.draw(
            st.sampled_from(["active.json", "applying.json", "reverting.json", "schema.json"])
        )
        record = json.loads((learner.project.state_dir / "active.json").read_bytes())
        changes = st.dictionaries(st.sampled_from(sorted(record)), json_values, min_size=1)
        content = data.draw(
            st.binary(max_size=50)
            | json_values.map(lambda value: json.dumps(value).encode())
            | changes.map(lambda change: json.dumps(record | change).encode())
        )
        path.write_bytes(content)
        with contextlib.suppress(TreeError):
            learner.revert()
        assert learner.source.read_bytes() in (learner.broken, learner.pristine)


# --- events


def test_events_come_back_in_order_with_their_data(learner):
    append_event(learner.project, "hint", "35-01", level=1)
    append_event(learner.project, "hint", "35-01", level=2, text="ñ\n\u2028")
    events = read_events(learner.project)
    assert [(event.kind, event.bug_id, dict(event.data)) for event in events] == [
        ("hint", "35-01", {"level": 1}),
        ("hint", "35-01", {"level": 2, "text": "ñ\n\u2028"}),
    ]


def test_a_project_without_events_has_none(learner):
    assert read_events(learner.project) == []
    assert not learner.project.state_dir.exists()


def test_wherever_the_last_line_is_torn_the_rest_is_read_and_the_next_event_is_whole(learner):
    append_event(learner.project, "hint", "35-01", level=1)
    path = learner.project.state_dir / "events.jsonl"
    first = path.read_bytes()
    append_event(learner.project, "hint", "35-01", level=2)
    whole = path.read_bytes()
    for length in range(len(first), len(whole)):
        path.write_bytes(whole[:length])
        kept = read_events(learner.project)
        assert kept[0].data == {"level": 1}
        append_event(learner.project, "hint", "35-01", level=3)
        after = read_events(learner.project)
        assert after[: len(kept)] == kept
        assert after[-1].data == {"level": 3}
        assert path.read_bytes().startswith(whole[:length])  # nothing is removed from it


def test_lines_that_are_no_events_are_skipped(learner):
    append_event(learner.project, "hint", "35-01", level=1)
    path = learner.project.state_dir / "events.jsonl"
    junk = [b"\xff\0", b"[]", b"7", b'{"kind": 1, "bug_id": "x"}', b"{" * 99_999, b'{"kind": "x"}']
    path.write_bytes(b"\n".join([*junk, path.read_bytes(), *junk]))
    assert [event.data for event in read_events(learner.project)] == [{"level": 1}]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_events_file_whatever_its_bytes_makes_a_traceback(new_learner, content):
    with tempfile.TemporaryDirectory() as folder:
        learner = new_learner(Path(folder) / "project")
        learner.apply()
        path = learner.project.state_dir / "events.jsonl"
        path.write_bytes(content)
        assert all(isinstance(event, Event) for event in read_events(learner.project))
        append_event(learner.project, "hint", "35-01", level=1)
        assert read_events(learner.project)[-1].data == {"level": 1}
