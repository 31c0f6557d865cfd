"""new: from a change in the tree to a spec that is proven once its texts are written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breaklab.spec.breaks import load_spec

Breaklab = Callable[..., Any]
FILE = "lab/src/tiny/data.py"
MEAN = "tests/test_shards.py::test_mean_of_shards_is_mean_of_all"


def edit(root: Path, old: str = "/ NUM_NUMBERS", new: str = "/ (NUM_NUMBERS - 1)") -> bytes:
    """Change the source as an author would; return what it was."""
    path = root / FILE
    pristine = path.read_bytes()
    assert old.encode() in pristine
    path.write_bytes(pristine.replace(old.encode(), new.encode()))
    return pristine


def fill_in(spec: Path) -> None:
    """Write the texts that a draft leaves to its author."""
    text = spec.read_text()
    for key, value in (("slug", "other-divisor"), ("family", "reduction")):
        text = text.replace(f"{key}: TODO", f"{key}: {value}")
    spec.write_text(text.replace("TODO", "the loss is larger than on one process"))


def test_a_change_becomes_a_spec_with_what_was_seen_of_it(
    breaklab: Breaklab, committed: Path
) -> None:
    edit(committed)
    broken = (committed / FILE).read_bytes()
    answer = breaklab("new", "35-40", "--from-diff", "--slug", "divisor", "--json").json
    spec = load_spec(committed / "breaks" / "35-40.yaml")
    assert (spec.slug, spec.red) == ("divisor", (MEAN,))
    assert [(run.variant, run.outcome.value) for run in spec.runs] == [("wrong", "wrong")]
    assert answer["red"] == [MEAN]
    assert answer["run"]["outcome"] == "wrong"
    assert (answer["file"], answer["inside"], answer["exact"]) == ("src/tiny/data.py", "mean", True)
    assert answer["todo"][:3] == ["family", "concept.en", "concept.es"]
    assert "expect.red" not in answer["todo"]
    assert answer["saved"] is None
    assert (committed / FILE).read_bytes() == broken


def test_the_draft_is_proven_once_its_texts_are_written(
    breaklab: Breaklab, committed: Path
) -> None:
    pristine = edit(committed)
    breaklab("new", "35-40", "--from-diff", "--restore")
    assert (committed / FILE).read_bytes() == pristine
    fill_in(committed / "breaks" / "35-40.yaml")
    assert breaklab("lint").out == "3 specs, 0 findings\n"
    assert "35-40  proven" in breaklab("verify", "35-40").out


def test_arguments_for_the_training_become_the_variants(
    breaklab: Breaklab, committed: Path
) -> None:
    edit(committed, "return mine", "return mine[: -1 if rank == 0 else None]")
    args = ("--variant", "error", "--", "--mode", "strict")
    breaklab("new", "35-40", "--from-diff", *args)
    (run,) = load_spec(committed / "breaks" / "35-40.yaml").runs
    assert (run.variant, run.args, run.outcome.value) == ("error", ("--mode", "strict"), "crash")


def test_what_to_do_next_is_said_with_commands_that_can_be_typed_here(
    breaklab: Breaklab, committed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pristine = edit(committed)
    monkeypatch.chdir(committed / "lab")
    out = breaklab("new", "35-40", "--from-diff", "--no-run").out
    assert "Written: breaks/35-40.yaml\n" in out
    commands = [line.strip().partition("  ")[0] for line in out.splitlines()[-4:]]
    assert commands == [
        "git checkout -- src/tiny/data.py",
        "breaklab schema --write ../breaks/schema.json",
        "breaklab lint ../breaks/35-40.yaml",
        "breaklab verify 35-40",
    ]
    subprocess.run(commands[0].split(), cwd=committed / "lab", check=True, capture_output=True)
    assert (committed / FILE).read_bytes() == pristine


def test_restore_saves_a_copy_of_the_change_first(breaklab: Breaklab, committed: Path) -> None:
    pristine = edit(committed)
    broken = (committed / FILE).read_bytes()
    answer = breaklab("new", "35-40", "--from-diff", "--no-run", "--restore", "--json").json
    assert (committed / FILE).read_bytes() == pristine
    assert Path(answer["saved"]).read_bytes() == broken
    assert Path(answer["saved"]).parent == committed / ".breaklab" / "saved"


def test_a_change_that_no_test_notices_is_told(breaklab: Breaklab, committed: Path) -> None:
    edit(committed, "return mine", "return list(mine)")
    out = breaklab("new", "35-40", "--from-diff").out
    assert "No test goes red: nobody can observe this break." in out
    assert "A run is healthy: " in out
    assert ", expect.red\n" in out


def test_a_lab_that_is_red_before_the_change_is_told_and_nothing_written(
    breaklab: Breaklab, committed: Path
) -> None:
    edit(committed)
    (committed / "tests" / "test_red.py").write_text("def test_red(): assert False\n")
    err = breaklab("new", "35-40", "--from-diff", code=2).err
    assert "pristine lab is not green: tests/test_red.py::test_red" in err
    assert "--no-run" in err
    assert not (committed / "breaks" / "35-40.yaml").exists()


def test_from_nothing_comes_a_scaffold_that_loads(breaklab: Breaklab, committed: Path) -> None:
    answer = breaklab("new", "35-41", "--lab", "tiny", "--json").json
    spec = load_spec(Path(answer["path"]))
    assert (spec.bug_id, spec.lab, spec.slug) == ("35-41", "tiny", "TODO")
    assert {"inject.file", "inject.find", "expect.red", "lesson.es"} <= set(answer["todo"])
    assert answer["run"] is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("35-01",), "the bug-id 35-01 is taken"),
        (("35-40", "--lab", "huge"), "this project has no lab huge"),
        (("35-40", "--from-diff"), "nothing is changed in the source of any lab"),
        (("35-40", "--restore"), "without --from-diff nothing is run and nothing put back"),
        (("35-40", "--", "--mode", "wait"), "without --from-diff nothing is run"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_written(
    breaklab: Breaklab, committed: Path, args: tuple[str, ...], message: str
) -> None:
    before = sorted((committed / "breaks").iterdir())
    assert message in breaklab("new", *args, code=2).err
    assert sorted((committed / "breaks").iterdir()) == before


def test_a_project_without_a_folder_for_breaks_says_how_to_name_one(
    breaklab: Breaklab, committed: Path
) -> None:
    settings = committed / "pyproject.toml"
    settings.write_text(settings.read_text().replace('breaks = ["breaks"]\n', ""))
    assert 'add `breaks = ["breaks"]` to' in breaklab("new", "35-40", code=2).err
