from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from breaklab.errors import ExitCode, TreeError
from breaklab.model import Project
from breaklab.tree.events import read_events
from breaklab.tree.workspace import (
    RevertHow,
    RevertKind,
    SourceState,
    Workspace,
    changed_tests,
    read_active,
    read_source,
)


def test_apply_puts_the_broken_bytes_in_and_remembers_the_pristine_ones(learner):
    learner.apply()
    active = read_active(learner.project)
    assert learner.source.read_bytes() == learner.broken
    assert (active.bug_id, active.pristine, active.broken) == (
        "35-01",
        learner.pristine,
        learner.broken,
    )
    assert active.source_state(learner.project) is SourceState.BROKEN
    assert learner.left_over() == []


def test_the_record_is_json_that_a_person_can_read_and_grep_does_not_leak_the_original(learner):
    learner.apply()
    text = (learner.project.state_dir / "active.json").read_text()
    record = json.loads(text)
    assert record["file"] == "labs/tiny/src/tiny/dataloader.py"
    assert record["mode"] == "644"
    assert "shard = shards[rank]" not in text


def test_nothing_is_applied_in_a_fresh_project(learner):
    assert read_active(learner.project) is None
    with Workspace.open(learner.project) as workspace:
        assert workspace.active is None
        assert workspace.recovered == ""
        assert workspace.source_state() is None


def test_a_second_apply_says_to_revert_first_and_changes_nothing(learner):
    learner.apply()
    with pytest.raises(TreeError, match="35-01 is applied already") as caught:
        learner.apply("35-02")
    assert caught.value.exit_code is ExitCode.USAGE
    assert "breaklab revert" in caught.value.hint
    assert read_active(learner.project).bug_id == "35-01"
    assert learner.source.read_bytes() == learner.broken


def test_a_second_apply_does_not_name_a_mystery_break(learner):
    learner.apply(hidden=True)
    with pytest.raises(TreeError) as caught:
        learner.apply("35-02")
    assert "35-01" not in caught.value.message + caught.value.hint


def test_apply_on_an_edited_source_takes_the_edited_bytes_for_pristine(learner):
    mine = learner.edit(b"import math\n", b"import math  # mine\n")
    learner.broken = mine + b"broken = True\n"
    learner.apply()
    learner.revert()
    assert learner.source.read_bytes() == mine


def test_apply_refuses_broken_bytes_made_from_an_older_version(learner):
    learner.edit(b"import math\n", b"import math  # mine\n")
    with (
        Workspace.open(learner.project) as workspace,
        pytest.raises(TreeError, match="changed meanwhile"),
    ):
        workspace.apply(
            learner.lab, "35-01", learner.source, learner.broken, pristine=learner.pristine
        )
    assert b"# mine" in learner.source.read_bytes()
    assert read_active(learner.project) is None


def test_apply_refuses_a_break_that_changes_nothing(learner):
    learner.broken = learner.pristine
    with pytest.raises(TreeError, match="would change nothing"):
        learner.apply()
    assert read_active(learner.project) is None


@pytest.mark.parametrize("escape", ["../../outside.py", "../../../../tests/tiny/test_tiny.py"])
def test_apply_refuses_a_file_outside_the_source(learner, escape):
    victim = Path(os.path.normpath(learner.source.parent / escape))
    if not victim.exists():
        victim.write_bytes(b"mine\n")
    before = victim.read_bytes()
    learner.source = learner.source.parent / escape
    with pytest.raises(TreeError, match="outside the lab's source"):
        learner.apply()
    assert victim.read_bytes() == before


def test_apply_refuses_a_link_that_leads_out_of_the_source(learner, tmp_path):
    victim = tmp_path / "victim.py"
    victim.write_bytes(b"mine\n")
    learner.source.unlink()
    learner.source.symlink_to(victim)
    with pytest.raises(TreeError, match="outside the lab's source"):
        learner.apply()
    assert victim.read_bytes() == b"mine\n"


def test_apply_changes_what_a_link_inside_the_source_leads_to_and_keeps_the_link(learner):
    real = learner.source.with_name("real.py")
    learner.source.rename(real)
    learner.source.symlink_to("real.py")
    learner.apply()
    assert learner.source.is_symlink()
    assert real.read_bytes() == learner.broken
    learner.revert()
    assert learner.source.is_symlink()
    assert real.read_bytes() == learner.pristine


@pytest.mark.parametrize("what", ["missing", "folder"])
def test_apply_refuses_a_source_that_is_no_file(learner, what):
    learner.source.unlink()
    if what == "folder":
        learner.source.mkdir()
    with pytest.raises(TreeError, match="there is no file"):
        learner.apply()


def test_a_source_that_changes_while_apply_works_is_left_as_it_is(learner, monkeypatch):
    def save_meanwhile(name: str) -> None:
        if name == "source: on disk":
            learner.source.write_bytes(b"saved by an editor\n")

    monkeypatch.setattr("breaklab.tree.atomic.on_step", save_meanwhile)
    with pytest.raises(TreeError, match="changed while breaklab worked on it"):
        learner.apply()
    assert learner.source.read_bytes() == b"saved by an editor\n"
    assert read_active(learner.project) is None
    assert learner.left_over() == []


def test_the_state_folder_hides_itself_from_git(learner):
    learner.apply()
    ignore = learner.project.state_dir / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_bytes(b"")  # a kill between its creation and its first byte
    learner.revert()
    assert ignore.read_text() == "*\n"


def test_apply_and_revert_are_events_in_order(learner):
    learner.apply(hidden=True)
    learner.revert()
    kinds = [(event.kind, event.bug_id) for event in read_events(learner.project)]
    assert kinds == [("applied", "35-01"), ("reverted", "35-01")]
    assert read_events(learner.project)[0].data == {"lab": "tiny", "hidden": True}


# --- a break that is solved


def test_a_solved_break_makes_room_for_the_next_one_and_the_fix_stays(learner):
    learner.apply()
    fixed = learner.edit(b"shard[:-1]", b"shard[:]")
    with Workspace.open(learner.project) as workspace:
        workspace.mark_solved("35-01", fix="other")
    learner.broken = fixed + b"second = True\n"
    learner.apply("35-02")
    assert read_active(learner.project).bug_id == "35-02"
    assert read_active(learner.project).pristine == fixed
    assert learner.saved() == {"dataloader.original.1.py": learner.pristine}


def test_solved_is_told_once_and_only_of_the_break_that_is_applied(learner):
    learner.apply()
    with Workspace.open(learner.project) as workspace:
        workspace.mark_solved("35-02")
        workspace.mark_solved("35-01", fix="original")
        workspace.mark_solved("35-01", fix="original")
    solved = [event for event in read_events(learner.project) if event.kind == "solved"]
    assert [(event.bug_id, dict(event.data)) for event in solved] == [
        ("35-01", {"fix": "original"})
    ]
    assert read_active(learner.project).solved


def test_a_mystery_is_none_any_more_once_solved(learner):
    learner.apply(hidden=True)
    assert read_active(learner.project).is_mystery
    with Workspace.open(learner.project) as workspace:
        workspace.mark_solved("35-01")
    assert not read_active(learner.project).is_mystery


def test_revert_after_another_fix_was_solved_puts_the_original_back_and_saves_the_fix(learner):
    learner.apply()
    fixed = learner.edit(b"shard[:-1]", b"shard[:]")
    with Workspace.open(learner.project) as workspace:
        workspace.mark_solved("35-01")
    report = learner.revert()
    assert report.kind is RevertKind.DISCARDED
    assert learner.source.read_bytes() == learner.pristine
    assert learner.saved() == {"dataloader.edited.1.py": fixed}


def test_the_same_break_can_be_applied_again_once_solved(learner):
    learner.apply()
    learner.source.write_bytes(learner.pristine)
    with Workspace.open(learner.project) as workspace:
        workspace.mark_solved("35-01")
    learner.apply()
    kinds = [event.kind for event in read_events(learner.project)]
    assert kinds == ["applied", "solved", "applied"]
    assert not read_active(learner.project).solved
    assert learner.revert(RevertHow.MERGE).kind is RevertKind.RESTORED


# --- tests untouched


def test_tests_that_nobody_touched_count_as_untouched(learner):
    learner.apply()
    cache = learner.lab.tests / "__pycache__"
    cache.mkdir()
    (cache / "test_tiny.cpython-311.pyc").write_bytes(b"x")
    (learner.lab.tests / ".test_tiny.py.swp").write_bytes(b"x")
    assert changed_tests(learner.project, learner.lab, read_active(learner.project)) == ()


def test_changed_added_and_removed_tests_are_named(learner):
    (learner.lab.tests / "test_two.py").write_bytes(b"")
    learner.apply()
    (learner.lab.tests / "test_tiny.py").write_bytes(b"def test_one(): assert True\n")
    (learner.lab.tests / "test_two.py").unlink()
    (learner.lab.tests / "conftest.py").write_bytes(b"collect_ignore = ['test_tiny.py']\n")
    (learner.project.root / "conftest.py").write_bytes(b"")
    assert changed_tests(learner.project, learner.lab, read_active(learner.project)) == (
        "conftest.py",
        "tests/tiny/conftest.py",
        "tests/tiny/test_tiny.py",
        "tests/tiny/test_two.py",
    )


def test_tests_that_are_links_pipes_or_unreadable_are_judged_without_a_hang(learner, tmp_path):
    elsewhere = tmp_path / "shared_test.py"
    elsewhere.write_bytes(b"one")
    (learner.lab.tests / "test_link.py").symlink_to(elsewhere)
    (learner.lab.tests / "test_loop.py").symlink_to("test_loop.py")
    (learner.lab.tests / "data").symlink_to(tmp_path)
    os.mkfifo(learner.lab.tests / "pipe")
    learner.apply()
    active = read_active(learner.project)
    assert changed_tests(learner.project, learner.lab, active) == ()
    elsewhere.write_bytes(b"two")
    (learner.lab.tests / "data").unlink()
    assert changed_tests(learner.project, learner.lab, active) == (
        "tests/tiny/data",
        "tests/tiny/test_link.py",
    )


def test_projects_without_tests_folder_still_apply(learner):
    (learner.lab.tests / "test_tiny.py").unlink()
    learner.lab.tests.rmdir()
    learner.apply()
    assert read_active(learner.project).tests_digest == {}


def test_a_moved_project_still_reverts(learner, tmp_path):
    learner.apply()
    new_root = tmp_path / "moved here"
    learner.project.root.rename(new_root)
    moved = Project(new_root, (new_root / "labs" / "tiny",), ())
    with Workspace.open(moved) as workspace:
        workspace.revert()
    source = new_root / learner.source.relative_to(learner.project.root)
    assert source.read_bytes() == learner.pristine


def test_a_source_to_read_that_is_gone_or_elsewhere_is_told(learner, tmp_path):
    assert read_source(learner.lab, learner.source) == learner.pristine
    (tmp_path / "victim.py").write_bytes(b"mine")
    with pytest.raises(TreeError, match="outside the lab's source"):
        read_source(learner.lab, tmp_path / "victim.py")
    learner.source.unlink()
    with pytest.raises(TreeError, match="there is no file"):
        read_source(learner.lab, learner.source)
