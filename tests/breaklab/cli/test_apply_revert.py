"""apply, status and revert on the learner's tree, seen from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Breaklab = Callable[..., Any]


@pytest.fixture
def source(tiny_project: Path) -> Path:
    return tiny_project / "lab" / "src" / "tiny" / "data.py"


def test_apply_tells_the_symptom_and_what_to_run_and_never_the_place(
    breaklab: Breaklab, source: Path
) -> None:
    pristine = source.read_bytes()
    out = breaklab("apply", "35-01").out
    assert b"if rank == 0:\n        mine = mine[:-1]" in source.read_bytes() != pristine
    assert 'training stands still at step 1, right after "starting all-reduce"' in out
    assert "breaklab run --variant silent" in out
    for secret in ("data.py", "shard", "mine", "drops the last", "own as much"):
        assert secret not in out


def test_apply_json_has_the_documented_keys(breaklab: Breaklab) -> None:
    assert breaklab("apply", "35-01", "--json").json == {
        "bug_id": "35-01",
        "lab": "tiny",
        "symptom": 'training stands still at step 1, right after "starting all-reduce"',
        "variants": ["stall", "silent", "error"],
    }


def test_a_second_apply_is_refused_and_changes_nothing(breaklab: Breaklab, source: Path) -> None:
    breaklab("apply", "35-01")
    broken = source.read_bytes()
    assert breaklab("apply", "35-02", code=2).err == (
        "Error: 35-01 is applied already; nothing was changed\nend it first: breaklab revert\n"
    )
    assert source.read_bytes() == broken


def test_apply_on_a_source_without_the_site_says_what_it_looked_for(
    breaklab: Breaklab, source: Path
) -> None:
    source.write_text(source.read_text().replace("numbers[rank::world_size]", "numbers"))
    err = breaklab("apply", "35-01", code=2).err
    assert "mine = numbers[rank::world_size]" in err
    assert "src/tiny/data.py" in err
    assert "if rank == 0" not in source.read_text()


def test_apply_of_a_broken_spec_names_line_and_column_and_the_repair(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    spec = tiny_project / "breaks" / "35-01.yaml"
    spec.write_text(spec.read_text().replace("en: compare what", "en: compare: what"))
    err = breaklab("apply", "35-01", code=2).err
    assert f"{spec}:18:16: " in err
    assert "quote it; the repaired line:\n  - en: 'compare: what two ranks own'\n" in err


def test_revert_puts_every_byte_back(breaklab: Breaklab, source: Path) -> None:
    pristine = source.read_bytes()
    breaklab("apply", "35-01")
    out = breaklab("revert").out
    assert out == "Break 35-01 is out.\nThe source is as it was before the break.\n"
    assert source.read_bytes() == pristine


def test_revert_with_nothing_applied_says_so(breaklab: Breaklab) -> None:
    err = breaklab("revert", code=2).err
    assert err.startswith("Error: no break is applied here, so there is nothing to revert\n")


def test_revert_keeps_an_edit_elsewhere_and_says_where_the_copy_is(
    breaklab: Breaklab, source: Path, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    source.write_text(source.read_text() + "\n\nEXTRA = 1\n")
    edited = source.read_bytes()
    reverted = breaklab("revert", "--json").json
    assert (reverted["bug_id"], reverted["kind"]) == ("35-01", "merged")
    assert (tiny_project / reverted["saved"]).read_bytes() == edited
    text = source.read_text()
    assert "EXTRA = 1" in text
    assert "if rank == 0" not in text


def test_revert_with_a_conflict_changes_nothing_and_offers_the_choices(
    breaklab: Breaklab, source: Path
) -> None:
    breaklab("apply", "35-01")
    source.write_text(source.read_text().replace("mine = mine[:-1]", "mine = mine[:-2]"))
    edited = source.read_bytes()
    err = breaklab("revert", code=1).err
    assert "nothing was changed" in err
    assert "--keep" in err
    assert "--discard" in err
    assert source.read_bytes() == edited
    breaklab("revert", "--keep")
    assert source.read_bytes() == edited


def test_revert_discard_saves_what_the_learner_had(
    breaklab: Breaklab, source: Path, tiny_project: Path
) -> None:
    pristine = source.read_bytes()
    breaklab("apply", "35-01")
    source.write_text(source.read_text().replace("mine = mine[:-1]", "mine = mine[:-2]"))
    edited = source.read_bytes()
    saved = breaklab("revert", "--discard", "--json").json["saved"]
    assert source.read_bytes() == pristine
    assert (tiny_project / saved).read_bytes() == edited


def test_keep_and_discard_together_are_refused(breaklab: Breaklab) -> None:
    assert "exclude each other" in breaklab("revert", "--keep", "--discard", code=2).err


def test_status_without_a_break_says_what_to_do(breaklab: Breaklab, tiny_project: Path) -> None:
    out = breaklab("status").out
    assert "Applied: none" in out
    assert "breaklab apply ID" in out
    assert breaklab("status", "--json").json == {
        "project": str(tiny_project),
        "applied": None,
        "counts": {"solved": 0, "given up": 0, "open": 2},
    }


def test_status_follows_the_learner(breaklab: Breaklab, source: Path) -> None:
    pristine = source.read_bytes()
    breaklab("apply", "35-01")
    breaklab("hint")
    applied = breaklab("status", "--json").json["applied"]
    assert applied == {
        "bug_id": "35-01",
        "lab": "tiny",
        "symptom": 'training stands still at step 1, right after "starting all-reduce"',
        "source": "broken",
        "hints_shown": [1],
        "num_hints": 3,
        "solved": False,
    }
    assert "1 of 3 shown" in breaklab("status").out
    source.write_bytes(pristine + b"# mine\n")
    assert "edited by you" in breaklab("status").out
    source.write_bytes(pristine)
    assert "edited by you" in breaklab("status").out  # whether it is right, check says
    source.unlink()
    assert "the file is gone" in breaklab("status").out


def test_list_marks_the_break_that_is_applied(breaklab: Breaklab) -> None:
    breaklab("apply", "35-02")
    states = {each["bug_id"]: each["state"] for each in breaklab("list", "--json").json["breaks"]}
    assert states == {"35-01": "open", "35-02": "applied"}


CODEMOD = """
import libcst as cst
from breaklab.inject.codemod import Codemod


class DropLast(Codemod):
    def leave_Return(self, original_node, updated_node):
        if isinstance(original_node.value, cst.Name) and original_node.value.value == "mine":
            changed = updated_node.with_changes(value=cst.parse_expression("mine[:-1]"))
            return self.site(original_node, changed)
        return updated_node
"""


def test_a_strangers_codemod_runs_only_when_trusted(
    breaklab: Breaklab, tiny_project: Path, tmp_path: Path, source: Path
) -> None:
    pack = tmp_path / "pack"
    (pack / "codemods").mkdir(parents=True)
    (pack / "codemods" / "drop.py").write_text(CODEMOD)
    spec = (tiny_project / "breaks" / "35-01.yaml").read_text()
    head, _inject, rest = spec.partition("inject:\n")
    inject = "inject:\n  file: src/tiny/data.py\n  codemod: codemods/drop.py:DropLast\n"
    text = head.replace("35-01", "99-01").replace("short-shard", "strange") + inject
    (pack / "99-01.yaml").write_text(text + "fix_diff: |" + rest.partition("fix_diff: |")[2])
    settings = tiny_project / "pyproject.toml"
    settings.write_text(settings.read_text().replace('["breaks"]', f'["breaks", "{pack}"]'))
    pristine = source.read_bytes()
    assert "--trust" in breaklab("apply", "99-01", code=2).err
    assert source.read_bytes() == pristine
    breaklab("apply", "99-01", "--trust")
    assert b"return mine[:-1]" in source.read_bytes()
