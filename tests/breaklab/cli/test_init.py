"""A workspace from the installed package: whole, sealed, and with nothing in git to spoil it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from breaklab.spec.breaks import load_spec
from breaklab.spec.sealed import is_sealed, seal, unsealed
from tests.breaklab.cli.conftest import Ran

Breaklab = Callable[..., Ran]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from breaklab.learn.starter import make_workspace

    return make_workspace(tmp_path_factory.mktemp("made") / "my workspace é").root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def test_sealed_specs_say_what_open_ones_say(workspace: Path) -> None:
    for original in sorted((ROOT / "breaks").glob("*.yaml")):
        sealed = workspace / "breaks" / original.name
        assert is_sealed(sealed.read_text())
        spec, expected = load_spec(sealed), load_spec(original)
        assert spec.bug_id == expected.bug_id
        if hasattr(expected, "fix_diff"):
            assert (spec.fix_diff, spec.inject.find) == (expected.fix_diff, expected.inject.find)


def test_no_file_of_a_workspace_shows_a_spec_to_a_reader(workspace: Path) -> None:
    spec = load_spec(ROOT / "breaks" / "35-01.yaml")
    words = [spec.hidden_cause.get("en").split(".")[0], "shard[:-1]"]
    texts = [p.read_bytes().decode(errors="replace") for p in (workspace / "breaks").iterdir()]
    for word in words:
        assert not [text for text in texts if word in text]


def test_git_shows_neither_the_break_nor_the_fix(workspace: Path) -> None:
    assert git(workspace, "status", "--porcelain") == ""
    source = workspace / "labs/phase35/src/minidp/dataloader.py"
    before = source.read_bytes()
    source.write_bytes(before + b"\n# changed\n")
    try:
        assert git(workspace, "status", "--porcelain") == ""
        assert git(workspace, "diff") == ""
        assert "# changed" not in git(workspace, "log", "--patch", "--", "labs")
    finally:
        source.write_bytes(before)


def test_a_workspace_is_a_project_with_all_breaks(
    workspace: Path, breaklab: Breaklab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    listed = breaklab("list", "--json").json
    assert breaklab("unseal", "35-01").out == (ROOT / "breaks" / "35-01.yaml").read_text()
    assert {each["bug_id"] for each in listed["breaks"]} >= {"35-01", "35-02"}


def test_init_refuses_a_folder_with_something_in_it(breaklab: Breaklab, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    breaklab("init", str(tmp_path / "full"), code=2)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]
    assert [path.name for path in tmp_path.iterdir() if "init" in path.name] == []


@pytest.mark.parametrize("damage", ["a", "~~~~", "c-oHT" * 20])
def test_a_damaged_seal_is_a_finding_and_no_traceback(
    workspace: Path, breaklab: Breaklab, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    path = workspace / "breaks" / "35-99.yaml"
    path.write_text(seal("x", "35-99").rpartition("|")[0] + f"|\n  {damage}\n")
    try:
        assert "sealed" in breaklab("lint", str(path), code=1).out
    finally:
        path.unlink()


def test_a_sealed_bomb_is_not_unpacked() -> None:
    from breaklab.spec.sealed import SealError

    with pytest.raises(SealError):
        unsealed(seal("a" * 2_000_000, "35-99"), 1_000_000)
