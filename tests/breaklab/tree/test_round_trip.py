"""Bytes, mode and place survive: apply and revert give back exactly what was there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breaklab.errors import TreeError
from breaklab.model import Project
from breaklab.tree.workspace import RevertHow, RevertKind, Workspace, read_active

KINDS = {
    "LF": b"a = 1\nb = 2\n",
    "CRLF": b"a = 1\r\nb = 2\r\n",
    "CR": b"a = 1\rb = 2\r",
    "mixed newlines": b"a = 1\r\nb = 2\nc = 3\r",
    "no final newline": b"a = 1\nb = 2",
    "BOM": b"\xef\xbb\xbfa = 1\n",
    "latin-1": b"# -*- coding: latin-1 -*-\na = '\xe9'\n",
    "form feed and tabs": b"a = 1\n\x0c\nif a:\n\tb = 2\n",
    "NUL": b"a = 1\0\n",
    "empty": b"",
    "one newline": b"\n",
    "big": b"x = 1\n" * 300_000,
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_encoding_and_newline_survives(new_learner, tmp_path, kind):
    pristine = KINDS[kind]
    learner = new_learner(tmp_path / "project", pristine, b"broken = True\r\n" + pristine)
    learner.apply()
    assert learner.source.read_bytes() == learner.broken
    learner.revert()
    assert learner.source.read_bytes() == pristine


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664, 0o640, 0o4755, 0o200 | 0o444])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_mode_bits_survive_whatever_the_umask(learner, mode, umask):
    learner.source.chmod(mode)
    before = os.umask(umask)
    try:
        learner.apply()
        applied = learner.source.stat().st_mode & 0o7777
        learner.revert()
    finally:
        os.umask(before)
    assert applied == mode
    assert learner.source.stat().st_mode & 0o7777 == mode


def test_a_mode_that_the_learner_changed_stays_changed(learner):
    learner.apply()
    learner.source.chmod(0o755)
    learner.revert()
    assert learner.source.stat().st_mode & 0o777 == 0o755


@settings(max_examples=80, deadline=None)
@given(
    pristine=st.binary(max_size=300),
    broken=st.binary(max_size=300),
    mode=st.sampled_from([0o600, 0o644, 0o755]),
)
def test_any_bytes_survive_apply_and_revert(new_learner, pristine, broken, mode):
    if pristine == broken:
        broken += b"x"
    with tempfile.TemporaryDirectory() as folder:
        learner = new_learner(Path(folder) / "project", pristine, broken)
        learner.source.chmod(mode)
        learner.apply()
        assert learner.source.read_bytes() == broken
        assert read_active(learner.project).pristine == pristine
        assert learner.revert().kind is RevertKind.RESTORED
        assert learner.source.read_bytes() == pristine
        assert learner.source.stat().st_mode & 0o777 == mode


@settings(max_examples=80, deadline=None)
@given(
    pristine=st.binary(max_size=200),
    broken=st.binary(max_size=200),
    edited=st.binary(max_size=200),
    how=st.sampled_from(RevertHow),
)
def test_whatever_the_learner_wrote_is_in_the_tree_or_in_a_saved_copy(
    new_learner, pristine, broken, edited, how
):
    if pristine == broken:
        broken += b"x"
    with tempfile.TemporaryDirectory() as folder:
        learner = new_learner(Path(folder) / "project", pristine, broken)
        learner.apply()
        learner.source.write_bytes(edited)
        with Workspace.open(learner.project) as workspace:
            try:
                workspace.revert(how)
            except TreeError:
                assert how is RevertHow.MERGE
                assert learner.source.read_bytes() == edited
                workspace.revert(RevertHow.DISCARD)
        content = learner.source.read_bytes()
        kept = {content, *learner.saved().values()}
        assert edited in kept or edited == broken
        assert pristine in kept or how is RevertHow.MERGE
        assert read_active(learner.project) is None


LINES = [f"line_{number} = {number}\n".encode() for number in range(30)]


@settings(max_examples=60, deadline=None)
@given(
    site=st.integers(10, 20),
    edits=st.dictionaries(
        st.sampled_from([*range(7), *range(24, 30)]),
        st.sampled_from([b"", b"mine = 1\n", b"mine = 1\n\nmine = 2\n"]),
        max_size=5,
    ),
)
def test_edits_away_from_the_site_survive_the_merge(new_learner, site, edits):
    broken = b"".join([*LINES[:site], b"broken = True\n", *LINES[site:]])
    with tempfile.TemporaryDirectory() as folder:
        learner = new_learner(Path(folder) / "project", b"".join(LINES), broken)
        learner.apply()
        mine = [edits.get(number, line) for number, line in enumerate(LINES)]
        edited = b"".join([*mine[:site], b"broken = True\n", *mine[site:]])
        learner.source.write_bytes(edited)
        report = learner.revert()
        assert report.kind is (RevertKind.MERGED if edited != broken else RevertKind.RESTORED)
        assert learner.source.read_bytes() == b"".join(mine)


NAMES = [
    "with space",
    "new\nline",
    "ñandú-分散",
    "quote'\"$(x)`",
    "-rf",
    "{path}",
    b"not-utf8-\xff",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_project_and_file_works(new_learner, tmp_path, name):
    name = os.fsdecode(name)
    learner = new_learner(tmp_path / name, name=f"{name}.py")
    learner.apply()
    edited = learner.edit(b"total = sum(values)", b"total = math.fsum(values)")
    report = learner.revert()
    assert report.kind is RevertKind.MERGED
    assert list(learner.saved().values()) == [edited]
    learner.source.write_bytes(learner.pristine)
    learner.apply()
    learner.edit(b"shard[:-1]", b"shard[:]")
    with pytest.raises(Exception, match="overlap"):
        learner.revert()
    learner.revert(RevertHow.DISCARD)
    assert learner.source.read_bytes() == learner.pristine
    assert learner.left_over() == []


def test_the_longest_file_name_works(new_learner, tmp_path):
    learner = new_learner(tmp_path / "project", name="n" * 252 + ".py")
    learner.apply()
    learner.edit(b"shard[:-1]", b"shard[:]")
    learner.revert(RevertHow.DISCARD)
    assert learner.source.read_bytes() == learner.pristine
    assert len(learner.saved()) == 1


@pytest.mark.parametrize("linked", ["project", "lab", "package"])
def test_a_linked_folder_works_and_stays_a_link(learner, tmp_path, linked):
    place = {
        "project": learner.project.root,
        "lab": learner.lab.root,
        "package": learner.source.parent,
    }[linked]
    real = place.with_name("real")
    place.rename(real)
    place.symlink_to(real)
    learner.apply()
    assert place.is_symlink()
    assert learner.source.read_bytes() == learner.broken
    learner.revert()
    assert place.is_symlink()
    assert learner.source.read_bytes() == learner.pristine


def test_a_lab_linked_in_from_outside_the_project_works(learner, tmp_path):
    real = tmp_path / "labs kept elsewhere"
    learner.lab.root.rename(real)
    learner.lab.root.symlink_to(real)
    learner.apply()
    learner.revert()
    assert learner.source.read_bytes() == learner.pristine


def test_apply_through_one_name_of_the_project_and_revert_through_another(learner, tmp_path):
    other = tmp_path / "other name"
    other.symlink_to(learner.project.root)
    learner.source = learner.source.resolve()
    learner.project = Project(other, (other / "labs" / "tiny",), ())
    learner.apply()
    learner.project = Project(other.resolve(), (other.resolve() / "labs" / "tiny",), ())
    learner.revert()
    assert learner.source.read_bytes() == learner.pristine


def test_extended_attributes_survive(learner):
    try:
        os.setxattr(learner.source, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("this file system has no extended attributes")
    learner.apply()
    learner.revert()
    assert os.getxattr(learner.source, "user.note") == b"mine"
