from __future__ import annotations

import subprocess

import pytest

from breaklab.author.change import change_in_tree, derivation
from breaklab.author.lint import lint
from breaklab.author.new import Observed, draft, free_path, scaffold
from breaklab.errors import ProjectError, SiteError
from breaklab.inject.edit import inject
from breaklab.model import Outcome
from breaklab.spec.breaks import load_spec
from breaklab.spec.project import find_project, load_labs
from breaklab.tree.workspace import Workspace

FILE = "lab/src/tiny/data.py"


def edit(root, old, new, file=FILE):
    path = root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def spec_from_edit(root, **options):
    change = change_in_tree(find_project(root))
    text = draft("35-40", derivation(change), **options)
    path = root / "breaks/35-40.yaml"
    path.write_text(text)
    return change, load_spec(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return mine\n", "    if rank == 0:\n        mine = mine[:-1]\n    return mine\n"),
        ("rank::world_size", "rank:world_size"),
        (" / NUM_NUMBERS", ""),
        ("    mine = numbers[rank::world_size]\n    return mine\n", "    return numbers\n"),
        ("    numbers = list(range(NUM_NUMBERS))\n", ""),
    ],
)
def test_edited_source_becomes_a_spec_that_makes_the_edit(committed, old, new):
    edit(committed, old, new)
    change, spec = spec_from_edit(committed)
    assert spec.inject.file == "src/tiny/data.py"
    assert inject(change.pristine, spec.inject).source == change.broken
    assert change.broken == (committed / FILE).read_bytes()


def test_draft_leaves_only_the_texts_to_write(committed):
    edit(committed, "/ NUM_NUMBERS", "/ (NUM_NUMBERS - 1)")
    red = ["tests/test_shards.py::test_mean_of_shards_is_mean_of_all"]
    runs = [
        ("silent", Observed(Outcome.WRONG, 3, ("--mode", "silent"))),
        ("stall", Observed(Outcome.STALL, 1)),
    ]
    _, spec = spec_from_edit(committed, red=red, runs=runs)
    assert spec.red == tuple(red)
    first, second = spec.runs
    assert (first.variant, first.args, first.outcome) == (
        "silent",
        ("--mode", "silent"),
        Outcome.WRONG,
    )
    assert (second.outcome, second.at_step, first.at_step) == (Outcome.STALL, 1, None)
    subprocess.run(["git", "checkout", "-q", FILE], cwd=committed, check=True)
    findings = [f for f in lint(find_project(committed)) if "35-40" in f.location.path]
    assert {finding.rule for finding in findings} == {"todo"}
    assert len(findings) == 17


def test_drafts_fix_takes_the_edit_back(committed):
    edit(committed, "rank::world_size", "rank:world_size")
    change, spec = spec_from_edit(committed)
    subprocess.run(
        ["git", "apply", "-"], cwd=committed / "lab", input=spec.fix_diff.encode(), check=True
    )
    assert (committed / FILE).read_bytes() == change.pristine


def test_scaffold_loads_once_it_is_filled_in_and_explains_every_key(committed):
    path = committed / "breaks/35-40.yaml"
    path.write_text(scaffold("35-40", "a-slug"))
    assert load_spec(path).slug == "a-slug"
    for line in scaffold("35-40").splitlines():
        if (
            line
            and not line.startswith((" ", "#"))
            and line.split(":")[0]
            not in (*("format", "bug-id", "slug", "inject", "fix_diff", "expect"),)
        ):
            assert "# " in line, line


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "nothing is changed in the source of any lab"),
        ({"tests/test_shards.py": "x = 1\n"}, "nothing is changed in the source of any lab"),
        (
            {FILE: "x = 1\n", "lab/src/tiny/train.py": "x = 1\n"},
            "changed are: lab/src/tiny/data.py, lab/src/tiny/train.py",
        ),
    ],
)
def test_anything_but_one_changed_file_is_told(committed, files, message):
    for name, text in files.items():
        (committed / name).write_text(text)
    with pytest.raises(ProjectError, match=message):
        change_in_tree(find_project(committed))


def test_changed_tests_inside_the_source_are_no_change_of_it(committed):
    manifest = committed / "lab/lab.yaml"
    manifest.write_text(manifest.read_text().replace("source: src", "source: .."))
    edit(committed, "/ NUM_NUMBERS", "")
    edit(committed, "== 5.5", "> 5", "tests/test_shards.py")
    assert change_in_tree(find_project(committed)).path == (committed / FILE).resolve()


def test_folder_without_git_says_what_is_needed(tiny_project, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tiny_project.parent))
    edit(tiny_project, "/ NUM_NUMBERS", "")
    with pytest.raises(ProjectError) as caught:
        change_in_tree(find_project(tiny_project))
    assert "git can't tell what was changed: " in caught.value.message
    assert caught.value.hint == "the lab must be committed; the change must not be"


def test_applied_break_is_not_taken_for_an_edit(committed):
    project = find_project(committed)
    source = committed / FILE
    broken = source.read_bytes().replace(b"return mine", b"return mine[:-1]")
    with Workspace.open(project) as workspace:
        workspace.apply(load_labs(project)[0], "35-01", source, broken)
    with pytest.raises(ProjectError, match="a break is applied; its change is not yours"):
        change_in_tree(project)


def test_edit_in_two_places_is_told(committed):
    edit(committed, "rank::world_size", "rank:world_size")
    edit(committed, "/ NUM_NUMBERS", "")
    with pytest.raises(SiteError, match="no pattern was found for the change"):
        derivation(change_in_tree(find_project(committed)))


def test_new_id_must_be_free_and_well_formed(committed):
    project = find_project(committed)
    assert free_path(project, "35-40") == committed / "breaks/35-40.yaml"
    for bug_id, message in (("35-01", "is taken"), ("x", "must look like 35-40")):
        with pytest.raises(ProjectError, match=message):
            free_path(project, bug_id)
    (committed / "breaks/35-39.yaml").write_text("format: 1\nbug-id: 35-39\nretired: x\n")
    with pytest.raises(ProjectError, match="is taken"):
        free_path(project, "35-39")
