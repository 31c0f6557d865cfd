from __future__ import annotations

import subprocess
import sys

import pytest

from breaklab.author.lint import lint, lint_paths
from breaklab.errors import Location
from breaklab.spec.project import find_project
from breaklab.tree.workspace import Workspace


def found(root, *paths):
    """Each finding as (file:line:column, rule, message, hint), files relative to the project."""
    findings = lint(find_project(root), [root / path for path in paths])
    return [(str(f.location).removeprefix(f"{root}/"), f.rule, f.message, f.hint) for f in findings]


@pytest.fixture
def edit(tiny_project):
    """Replace text in a file of the tiny project, by default in its first spec."""

    def replace(old, new, file="breaks/35-01.yaml"):
        path = tiny_project / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new))

    return replace


def test_proper_specs_have_no_findings_and_are_counted(tiny_project):
    assert lint_paths(find_project(tiny_project)) == ([], 2)


def test_every_finding_of_every_spec_comes_at_once(tiny_project, edit):
    edit("slug: short-shard", "slug: short-shard\ncolour: red")
    edit("  es: una media divide por cuántos hay\n", "", "breaks/35-02.yaml")
    edit("inside: mean", "inside: maen", "breaks/35-02.yaml")
    assert [(place, rule) for place, rule, *_ in found(tiny_project)] == [
        ("breaks/35-01.yaml:4:1", "unknown-key"),
        ("breaks/35-02.yaml:7:3", "R8"),
        ("breaks/35-02.yaml:25:3", "site"),
    ]


def test_pattern_without_site_names_the_nearest_code(tiny_project, edit):
    edit("find: mine = numbers[rank::world_size]", "find: mine = numbers[rank:world_size]")
    ((place, rule, message, hint),) = found(tiny_project)
    assert (place, rule) == ("breaks/35-01.yaml:28:3", "site")
    assert message == (
        "`mine = numbers[rank:world_size]` has no site in `shard` of src/tiny/data.py"
    )
    assert hint.startswith("the nearest is line 9: `mine = numbers[rank::world_size]`")


def test_stale_fix_diff_is_found_and_refresh_is_named(tiny_project, edit):
    edit('"""Return the numbers of one rank; all', '"""Return what one rank owns; all', LAB)
    assert found(tiny_project) == [
        (
            "breaks/35-01.yaml:34:11",
            "fix-diff",
            "`fix_diff` is not the way from the broken source to the original",
            "write it anew: breaklab refresh 35-01",
        )
    ]


LAB = "lab/src/tiny/data.py"


@pytest.mark.parametrize(
    ("nodeid", "reason"),
    [
        (
            "tests/test_shards.py::test_no_such",
            "tests/test_shards.py has no test of that name",
        ),
        ("tests/test_other.py::test_a", "there is no file tests/test_other.py"),
        ("tests/test_shards.py", "names no test: write FILE::TEST"),
        ("../test_shards.py::test_a", "there is no file ../test_shards.py"),
        (
            "tests/test_shards.py::TestShards::test_every_number_is_seen_once",
            "tests/test_shards.py has no test of that name",
        ),
    ],
)
def test_promised_test_that_does_not_exist_is_found(tiny_project, edit, nodeid, reason):
    edit("tests/test_shards.py::test_ranks_own_equally_many", nodeid)
    ((place, rule, message, _),) = found(tiny_project)
    assert (place, rule) == ("breaks/35-01.yaml:49:7", "red")
    assert message.startswith(f"`{nodeid}`")
    assert reason in message


def test_promised_tests_may_be_methods_and_have_parameters(tiny_project, edit):
    edit(
        "tests/test_shards.py::test_ranks_own_equally_many",
        "tests/test_more.py::TestA::test_b[3-x]",
    )
    (tiny_project / "tests/test_more.py").write_text(
        "class TestA:\n    def test_b(self, n): pass\n"
    )
    assert found(tiny_project) == []


def test_promised_test_in_a_file_that_is_no_python_is_found(tiny_project, edit):
    edit("tests/test_shards.py::test_ranks_own_equally_many", "tests/test_more.py::test_b")
    (tiny_project / "tests/test_more.py").write_text("def test_b(:\n")
    ((_, rule, message, _),) = found(tiny_project)
    assert rule == "red"
    assert "can't be read as Python" in message


def test_break_that_no_test_can_observe_breaks_rule_three(tiny_project, edit):
    edit(
        "  red:\n    - tests/test_shards.py::test_mean_of_shards_is_mean_of_all\n",
        "  red: []\n",
        "breaks/35-02.yaml",
    )
    assert [(rule, message) for _, rule, message, _ in found(tiny_project)] == [
        ("R3", "no test is promised to go red: nobody could observe this break")
    ]


def test_waived_rule_is_no_finding_and_an_idle_waiver_is_one(tiny_project, edit):
    edit("mine = mine[:-1]\nfix_diff", "mine = mine[:-1]\n        mine = list(mine)\nfix_diff")
    rules = [rule for _, rule, *_ in found(tiny_project)]
    assert rules == ["R2", "fix-diff"]
    edit("difficulty: 1", "difficulty: 1\nwaive: {R2: three lines on purpose, R1: out of habit}")
    assert [(place, rule, message) for place, rule, message, _ in found(tiny_project)] == [
        ("breaks/35-01.yaml:6:41", "waiver", "R1 is waived, but this break keeps it"),
        ("breaks/35-01.yaml:36:11", "fix-diff", found(tiny_project)[1][2]),
    ]


def test_names_of_other_breaks_are_checked(tiny_project, edit):
    edit(
        "slug: short-mean", "slug: short-shard\nprerequisites: [35-01, 35-77]", "breaks/35-02.yaml"
    )
    assert [(place, rule, message) for place, rule, message, _ in found(tiny_project)] == [
        ("breaks/35-01.yaml:3:7", "duplicate-slug", "another break has the slug `short-shard`"),
        ("breaks/35-02.yaml:3:7", "duplicate-slug", "another break has the slug `short-shard`"),
        ("breaks/35-02.yaml:4:24", "prerequisite", "the prerequisite 35-77 is no other break"),
    ]


def test_second_spec_of_one_bug_id_is_found(tiny_project):
    text = (tiny_project / "breaks/35-01.yaml").read_text()
    (tiny_project / "breaks/copy.yaml").write_text(text)
    ((place, rule, message, _),) = found(tiny_project)
    assert (place, rule) == ("breaks/copy.yaml:2:9", "duplicate-id")
    assert message == f"the bug-id 35-01 is taken by {tiny_project}/breaks/35-01.yaml"


def test_only_the_named_specs_are_looked_at(tiny_project, edit):
    edit("inside: shard", "inside: shrad")
    edit("inside: mean", "inside: maen", "breaks/35-02.yaml")
    assert [place for place, *_ in found(tiny_project, "breaks/35-02.yaml")] == [
        "breaks/35-02.yaml:26:3"
    ]
    assert len(found(tiny_project, "breaks")) == 2
    assert lint_paths(find_project(tiny_project), [tiny_project / "breaks/35-01.yaml"])[1] == 1


def test_spec_outside_every_pack_can_be_looked_at(tiny_project):
    draft = tiny_project / "draft.yaml"
    text = (tiny_project / "breaks/35-02.yaml").read_text()
    draft.write_text(text.replace("bug-id: 35-02", "bug-id: 35-40").replace("mean\n", "maen\n"))
    findings, num_specs = lint_paths(find_project(tiny_project), [draft])
    assert num_specs == 1
    assert [f.rule for f in findings] == ["site"]


def test_break_that_is_applied_is_judged_by_the_pristine_source(tiny_project):
    project = find_project(tiny_project)
    source = tiny_project / LAB
    broken = source.read_bytes().replace(b"return mine", b"return mine[:-1]")
    from breaklab.spec.project import load_labs

    with Workspace.open(project) as workspace:
        workspace.apply(load_labs(project)[0], "35-01", source, broken)
    assert source.read_bytes() == broken
    assert found(tiny_project) == []


def test_manifest_that_can_not_be_used_is_a_finding(tiny_project, edit):
    edit("num_ranks: 2", "num_ranks: two", "lab/lab.yaml")
    assert found(tiny_project) == [
        (
            "lab/lab.yaml:11:14",
            "type",
            "`entrypoint.num_ranks` is `two`; it must be a whole number from 1 to 64",
            "",
        )
    ]


def test_code_of_a_pack_is_never_run(tiny_project, edit, tmp_path):
    witness = tmp_path / "ran"
    edit(
        "  inside: mean\n  find: NUM_NUMBERS\n  replace_with: (NUM_NUMBERS - 1)\n",
        "  codemod: codemods/x.py:Break\n",
        "breaks/35-02.yaml",
    )
    folder = tiny_project / "breaks/codemods"
    folder.mkdir()
    (folder / "x.py").write_text(f"open({str(witness)!r}, 'w')\nclass Break: pass\n")
    found(tiny_project)
    assert not witness.exists()


def test_path_of_a_finding_is_the_specs_own(tiny_project, edit):
    edit("slug: short-shard", "slug: short-shard\ncolour: red")
    (finding,) = lint(find_project(tiny_project))
    assert finding.location == Location(str(tiny_project / "breaks/35-01.yaml"), 4, 1)


def test_lint_starts_without_torch(tiny_project):
    code = (
        "import sys; from pathlib import Path\n"
        "from breaklab.author.lint import lint\n"
        "from breaklab.spec.project import find_project\n"
        "assert lint(find_project(Path('.'))) == []\n"
        "print('torch' in sys.modules, 'libcst' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tiny_project, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_outcome_that_only_numbers_can_tell_needs_a_lab_with_metrics(tiny_project, edit):
    manifest = tiny_project / "lab/lab.yaml"
    text = manifest.read_text()
    manifest.write_text(text[: text.index("metrics:")])
    (first, second) = found(tiny_project)
    assert first[:3] == (
        "breaks/35-01.yaml:52:58",
        "outcome",
        "a run can't be told to be wrong: the lab has no `metrics`",
    )
    assert second[0].startswith("breaks/35-02.yaml:")


def test_spec_that_refresh_has_not_seen_yet_is_told_what_it_fills_in(tiny_project):
    path = tiny_project / "breaks/35-02.yaml"
    text = path.read_text()
    text = text[: text.index("fix_diff:")] + "expect:\n  red: []\n"
    path.write_text(text)
    assert [(rule, message, hint) for _place, rule, message, hint in found(tiny_project)] == [
        ("fix-diff", "the key `fix_diff` is missing", "write it anew: breaklab refresh 35-02"),
        (
            "R3",
            "no test is promised to go red: nobody could observe this break",
            "measure it: breaklab refresh --red 35-02",
        ),
    ]
