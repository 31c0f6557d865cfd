from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from breaklab.errors import ExitCode, TreeError
from breaklab.tree.workspace import (
    RevertHow,
    RevertKind,
    SourceState,
    Workspace,
    read_active,
)

TOTAL = b"    total = sum(values)\n"
MY_TOTAL = b"    total = math.fsum(values)  # mine\n"


def test_revert_puts_back_the_pristine_bytes(learner):
    learner.apply()
    report = learner.revert()
    assert report.kind is RevertKind.RESTORED
    assert learner.source.read_bytes() == learner.pristine
    assert read_active(learner.project) is None
    assert learner.saved() == {}
    assert learner.left_over() == []


def test_the_message_of_a_plain_revert_does_not_name_the_file(learner):
    learner.apply(hidden=True)
    report = learner.revert()
    assert report.hidden
    assert "dataloader" not in report.message


def test_revert_with_nothing_applied_says_so_with_exit_code_2(learner):
    with pytest.raises(TreeError, match="no break is applied here") as caught:
        learner.revert()
    assert caught.value.exit_code is ExitCode.USAGE
    assert learner.source.read_bytes() == learner.pristine


def test_revert_keeps_other_edits_and_saves_what_was_there(learner):
    learner.apply()
    edited = learner.edit(TOTAL, MY_TOTAL)
    report = learner.revert()
    assert report.kind is RevertKind.MERGED
    assert learner.source.read_bytes() == learner.pristine.replace(TOTAL, MY_TOTAL)
    assert report.saved == ".breaklab/saved/dataloader.edited.1.py"
    assert (learner.project.root / report.saved).read_bytes() == edited
    assert report.saved in report.message
    assert "labs/tiny/src/tiny/dataloader.py" in report.message


def test_revert_after_the_original_fix_just_ends_the_break(learner):
    learner.apply()
    learner.source.write_bytes(learner.pristine)
    report = learner.revert()
    assert report.kind is RevertKind.ALREADY_PRISTINE
    assert learner.source.read_bytes() == learner.pristine
    assert learner.saved() == {}
    assert read_active(learner.project) is None


def test_revert_after_the_original_fix_and_other_edits_leaves_the_file_as_it_is(learner):
    learner.apply()
    learner.source.write_bytes(learner.pristine.replace(TOTAL, MY_TOTAL))
    before = learner.source.stat()
    report = learner.revert()
    assert report.kind is RevertKind.MERGED
    assert learner.source.read_bytes() == learner.pristine.replace(TOTAL, MY_TOTAL)
    assert learner.source.stat().st_ino == before.st_ino
    assert learner.saved() == {}


def test_revert_after_another_fix_conflicts_changes_nothing_and_names_the_choices(learner):
    learner.apply()
    edited = learner.edit(b"shard[:-1]", b"shard[:]")
    with pytest.raises(TreeError, match="your edits and the original overlap") as caught:
        learner.revert()
    assert caught.value.exit_code is ExitCode.NEGATIVE
    assert "--keep" in caught.value.hint
    assert "--discard" in caught.value.hint
    assert learner.source.read_bytes() == edited
    assert read_active(learner.project).source_state(learner.project) is SourceState.EDITED
    assert learner.left_over() == []


def test_discard_puts_the_original_back_and_saves_the_edits(learner):
    learner.apply()
    edited = learner.edit(b"shard[:-1]", b"shard[:]")
    report = learner.revert(RevertHow.DISCARD)
    assert report.kind is RevertKind.DISCARDED
    assert learner.source.read_bytes() == learner.pristine
    assert learner.saved() == {"dataloader.edited.1.py": edited}


def test_keep_leaves_the_file_and_saves_the_original(learner):
    learner.apply()
    edited = learner.edit(b"shard[:-1]", b"shard[:]")
    report = learner.revert(RevertHow.KEEP)
    assert report.kind is RevertKind.KEPT
    assert learner.source.read_bytes() == edited
    assert learner.saved() == {"dataloader.original.1.py": learner.pristine}
    assert read_active(learner.project) is None


def test_keep_and_discard_without_edits_save_what_else_would_be_lost(learner):
    learner.apply()
    assert learner.revert(RevertHow.DISCARD).kind is RevertKind.RESTORED
    assert learner.saved() == {}
    learner.apply()
    assert learner.revert(RevertHow.KEEP).kind is RevertKind.KEPT
    assert learner.source.read_bytes() == learner.broken
    assert learner.saved() == {"dataloader.original.1.py": learner.pristine}


def test_saved_copies_never_overwrite_each_other_and_equal_ones_are_saved_once(learner):
    edits = [b"shard[:]", b"shard[0:]", b"shard[:]"]
    for edit in edits:
        learner.apply()
        learner.edit(b"shard[:-1]", edit)
        learner.revert(RevertHow.DISCARD)
    saved = learner.saved()
    assert list(saved) == ["dataloader.edited.1.py", "dataloader.edited.2.py"]
    assert [edit in saved[name] for name, edit in zip(saved, edits, strict=False)] == [True, True]


# --- the file is gone, or something else


def test_a_deleted_file_comes_back_with_its_mode(learner):
    learner.source.chmod(0o750)
    learner.apply()
    learner.source.unlink()
    assert read_active(learner.project).source_state(learner.project) is SourceState.MISSING
    report = learner.revert()
    assert report.kind is RevertKind.RESTORED
    assert learner.source.read_bytes() == learner.pristine
    assert learner.source.stat().st_mode & 0o777 == 0o750


def test_a_deleted_file_stays_deleted_with_keep_and_the_original_is_saved(learner):
    learner.apply()
    learner.source.unlink()
    learner.revert(RevertHow.KEEP)
    assert not learner.source.exists()
    assert learner.saved() == {"dataloader.original.1.py": learner.pristine}


def test_a_deleted_folder_needs_a_choice(learner):
    learner.apply()
    shutil.rmtree(learner.source.parent)
    with pytest.raises(TreeError, match=r"the folder of .* is gone") as caught:
        learner.revert()
    assert "--discard" in caught.value.hint
    assert not learner.source.parent.exists()
    learner.revert(RevertHow.DISCARD)
    assert learner.source.read_bytes() == learner.pristine


@pytest.mark.parametrize("what", ["folder", "link", "dangling link", "pipe"])
@pytest.mark.parametrize("how", [RevertHow.MERGE, RevertHow.DISCARD])
def test_something_else_in_the_files_place_is_not_touched(learner, tmp_path, what, how):
    learner.apply()
    learner.source.unlink()
    target = tmp_path / "elsewhere.py"
    if what == "folder":
        learner.source.mkdir()
        (learner.source / "mine").write_bytes(b"mine")
    elif what == "pipe":
        os.mkfifo(learner.source)
    else:
        if what == "link":
            target.write_bytes(b"mine")
        learner.source.symlink_to(target)
    assert read_active(learner.project).source_state(learner.project) is SourceState.REPLACED
    with pytest.raises(TreeError, match="not a regular file any more") as caught:
        learner.revert(how)
    assert "--keep" in caught.value.hint
    assert read_active(learner.project) is not None
    learner.revert(RevertHow.KEEP)
    assert learner.saved() == {"dataloader.original.1.py": learner.pristine}
    assert not target.exists() or target.read_bytes() == b"mine"


def test_read_source_says_that_the_file_is_gone_and_how_to_get_it_back(learner):
    learner.apply()
    learner.source.unlink()
    with pytest.raises(TreeError, match="is gone") as caught:
        read_active(learner.project).read_source(learner.project)
    assert "revert" in caught.value.hint


def test_an_edit_saved_while_revert_works_is_left_alone(learner, monkeypatch):
    learner.apply()

    def save_meanwhile(name: str) -> None:
        if name == "source: on disk":
            learner.source.write_bytes(b"saved by an editor\n")

    monkeypatch.setattr("breaklab.tree.atomic.on_step", save_meanwhile)
    with pytest.raises(TreeError, match="changed while breaklab worked on it"):
        learner.revert()
    assert learner.source.read_bytes() == b"saved by an editor\n"
    assert read_active(learner.project) is not None
    assert learner.left_over() == []


# --- merging


def test_without_git_the_message_says_so_and_keep_and_discard_still_work(learner, monkeypatch):
    learner.apply()
    edited = learner.edit(TOTAL, MY_TOTAL)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TreeError, match="git, which is not installed") as caught:
        learner.revert()
    assert "--discard" in caught.value.hint
    assert learner.source.read_bytes() == edited
    assert learner.left_over() == []
    learner.revert(RevertHow.DISCARD)
    assert learner.source.read_bytes() == learner.pristine


def test_a_broken_git_configuration_has_no_say_in_the_merge(learner, monkeypatch, tmp_path):
    (tmp_path / "config").write_text("[merge\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    git = learner.project.root / ".git"
    git.mkdir()
    (git / "config").write_text("[broken\n")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    learner.apply()
    learner.edit(TOTAL, MY_TOTAL)
    assert learner.revert().kind is RevertKind.MERGED


def test_revert_in_a_git_repository_touches_neither_index_nor_stash(learner):
    def git(*args: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(learner.project.root), *identity, *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    git("add", "labs", "tests")
    git("commit", "--quiet", "--message", "lab")
    staged = learner.edit(b"import math\n", b"import math  # staged\n")
    git("add", "labs")
    learner.broken = staged.replace(b"return shard\n", b"return shard[1:]\n")
    learner.apply()
    learner.edit(TOTAL, MY_TOTAL)
    learner.revert()
    assert git("show", ":labs/tiny/src/tiny/dataloader.py").encode() == staged
    assert git("stash", "list") == ""
    assert git("status", "--short").split() == ["MM", "labs/tiny/src/tiny/dataloader.py"]


def test_a_merge_that_would_not_be_python_any_more_counts_as_a_conflict(learner, new_learner):
    pristine = b"if ready:\n    start()\na = 1\nb = 2\nc = 3\nd = 4\nwait()\n"
    broken = b"a = 1\nb = 2\nc = 3\nd = 4\nwait()\n"
    learner = new_learner(learner.project.root / "second", pristine, broken)
    learner.apply()
    learner.edit(b"wait()\n", b"wait()\nx = 5\n")
    assert learner.revert().kind is RevertKind.MERGED  # this one is fine ...
    learner.source.write_bytes(learner.pristine)
    learner.broken = b"start()\na = 1\nb = 2\nc = 3\nd = 4\nwait()\n"
    learner.pristine = b"try:\n    start()\na = 1\nb = 2\nc = 3\nd = 4\nwait()\n"
    learner.source.write_bytes(learner.pristine)
    learner.apply()
    edited = learner.edit(b"wait()\n", b"wait()\nx = 5\n")
    with pytest.raises(TreeError, match="overlap"):
        learner.revert()
    assert learner.source.read_bytes() == edited


def test_an_editor_that_made_every_newline_crlf_does_not_make_it_a_conflict(learner):
    learner.apply()
    learner.edit(TOTAL, MY_TOTAL)
    crlf = learner.source.read_bytes().replace(b"\n", b"\r\n")
    learner.source.write_bytes(crlf)
    report = learner.revert()
    assert report.kind is RevertKind.MERGED
    merged = learner.pristine.replace(TOTAL, MY_TOTAL).replace(b"\n", b"\r\n")
    assert learner.source.read_bytes() == merged
    assert learner.saved() == {"dataloader.edited.1.py": crlf}


def test_another_fix_in_crlf_is_still_a_conflict(learner):
    learner.apply()
    edited = learner.edit(b"shard[:-1]", b"shard[:]").replace(b"\n", b"\r\n")
    learner.source.write_bytes(edited)
    with pytest.raises(TreeError, match="overlap"):
        learner.revert()
    assert learner.source.read_bytes() == edited


def test_bytes_that_are_no_text_are_a_conflict_not_a_crash(learner):
    learner.apply()
    learner.edit(TOTAL, b"\0\0\0\n")
    with pytest.raises(TreeError, match="overlap"):
        learner.revert()


@pytest.mark.parametrize("width", [60, 120])
def test_after_black_on_the_broken_source_revert_tells_what_happens_and_loses_nothing(
    learner, width
):
    learner.apply()
    command = [sys.executable, "-m", "black", "--quiet", f"--line-length={width}"]
    learner.edit(TOTAL, b"    total = math . fsum( [ value for value in values if value > 0 ] )\n")
    subprocess.run([*command, str(learner.source)], check=True)
    black = learner.source.read_bytes()
    report = learner.revert()
    assert report.kind is RevertKind.MERGED
    assert learner.saved() == {"dataloader.edited.1.py": black}
    assert report.saved in report.message
    assert b"shard[:-1]" not in learner.source.read_bytes()
    assert b"math.fsum(" in learner.source.read_bytes()


def test_after_black_split_the_injected_line_revert_names_the_choices_and_loses_nothing(
    learner, new_learner
):
    site = b"    shard = shards[rank]\n"
    long = (
        b"    shard = shards[rank][: len(shards[rank]) - (1 if rank == 0 and world > 1 else 0)]\n"
    )
    broken = learner.pristine.replace(site, long)
    learner = new_learner(learner.project.root / "second", learner.pristine, broken)
    learner.apply()
    command = [sys.executable, "-m", "black", "--quiet", "--line-length=60"]
    subprocess.run([*command, str(learner.source)], check=True)
    black = learner.source.read_bytes()
    assert long not in black
    with pytest.raises(TreeError, match="overlap") as caught:
        learner.revert()
    assert "--discard" in caught.value.hint
    assert learner.source.read_bytes() == black
    report = learner.revert(RevertHow.DISCARD)
    assert learner.source.read_bytes() == learner.pristine
    assert (learner.project.root / report.saved).read_bytes() == black


def test_revert_can_be_asked_in_the_workspace_that_applied(learner):
    with Workspace.open(learner.project) as workspace:
        workspace.apply(learner.lab, "35-01", learner.source, learner.broken)
        assert workspace.source_state() is SourceState.BROKEN
        workspace.revert()
        assert workspace.active is None
    assert learner.source.read_bytes() == learner.pristine
