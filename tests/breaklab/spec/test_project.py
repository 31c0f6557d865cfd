"""Where a project is found, what its labs are, and what its catalogue does with broken specs."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from breaklab.errors import ProjectError, SpecError
from breaklab.spec.catalogue import load_catalogue, load_named, spec_files
from breaklab.spec.lab import load_lab
from breaklab.spec.project import find_project, lab_of, load_labs, source_file


def test_project_is_found_from_any_subfolder(tiny_project):
    for folder in ("", "lab", "lab/src/tiny"):
        project = find_project(tiny_project / folder)
        assert project.root == tiny_project
        assert project.labs == (tiny_project / "lab",)
        assert project.breaks == (tiny_project / "breaks",)


def test_folder_that_is_no_project_says_what_to_do(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n")
    with pytest.raises(ProjectError) as caught:
        find_project(tmp_path)
    assert caught.value.message == f"no breaklab project in {tmp_path} or above it"
    assert caught.value.hint == (
        "change to a folder with a lab.yaml, or whose pyproject.toml holds [tool.breaklab]"
    )


def test_repository_with_nothing_but_a_lab_yaml_is_a_project(tiny_project):
    (tiny_project / "pyproject.toml").write_text("[tool.black]\n")
    project = find_project(tiny_project / "lab/src/tiny")
    assert (project.root, project.labs) == (tiny_project / "lab", (tiny_project / "lab",))
    assert project.breaks == (tiny_project / "lab/breaks",)
    assert load_catalogue(project).specs == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.breaklab\n", "pyproject.toml can't be read: "),
        ('[tool.breaklab]\nlabs = "lab"\n', "`labs` of [tool.breaklab] in"),
        ("[tool.breaklab]\nbreaks = [1]\n", "`breaks` of [tool.breaklab] in"),
    ],
)
def test_settings_that_can_not_be_used_are_told(tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ProjectError) as caught:
        find_project(tmp_path)
    assert message in caught.value.message


def test_project_without_a_lab_says_so(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.breaklab]\n")
    with pytest.raises(ProjectError, match="has no lab"):
        load_labs(find_project(tmp_path))


def test_lab_is_read_whole(tiny_project):
    lab = load_lab(tiny_project / "lab/lab.yaml")
    assert (lab.root, lab.name) == (tiny_project / "lab", "tiny")
    assert (lab.source, lab.tests) == (tiny_project / "lab/src", tiny_project / "tests")
    assert (lab.entrypoint.module, lab.entrypoint.num_ranks) == ("tiny.train", 2)
    assert lab.title.get("es") == "Un laboratorio sin torch"
    assert lab.metrics.compare == ("loss",)


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("source: src", "source: sr", "lab.yaml:6:9: `source` is `sr`, but there is no folder"),
        ("  module: tiny.train", "  x: 1", "lab.yaml:9:3: give exactly one of `module` and"),
        ("(?P<step>", "(", "lab.yaml:12:12: `step_line` must hold the group step"),
        ("rank=(?P<rank>", "rank=((?P<rank>", "lab.yaml:12:12: `step_line` is no regular"),
        ("tolerance: 1.0e-5", "tolerance: -1", "lab.yaml:17:14: `metrics.tolerance` is `-1`"),
        ("preload: []", "preloads: []", "lab.yaml:18:1: unknown key `preloads`"),
        ("preload: []", "preload: x", "lab.yaml:18:10: `preload` is `x`; it must be a list"),
    ],
)
def test_manifest_that_can_not_be_used_is_told_with_its_place(tiny_project, old, new, finding):
    path = tiny_project / "lab/lab.yaml"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_lab(path)
    assert any(finding in str(f) for f in caught.value.findings), caught.value.findings


def test_missing_manifest_is_told(tiny_project):
    (tiny_project / "lab/lab.yaml").unlink()
    with pytest.raises(SpecError, match=r"lab\.yaml: can't be read: No such file"):
        load_labs(find_project(tiny_project))


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_break_names_its_lab_or_is_for_the_one_that_has_its_file(tiny_project):
    project = find_project(tiny_project)
    spec = load_catalogue(project).find("35-01")
    assert lab_of(project, spec).name == "tiny"
    edit(spec.path, "slug:", "lab: other\nslug:")
    with pytest.raises(ProjectError) as caught:
        lab_of(project, load_catalogue(project).find("35-01"))
    assert caught.value.message == "35-01 is for the lab other, which this project does not have"
    assert caught.value.hint == "its labs: tiny"


def test_tests_inside_the_source_are_no_source(tiny_project):
    edit(tiny_project / "lab/lab.yaml", "source: src", "source: .")
    edit(tiny_project / "lab/lab.yaml", "tests: ../tests", "tests: src/tiny")
    project = find_project(tiny_project)
    spec = load_catalogue(project).find("35-01")
    with pytest.raises(ProjectError, match=r"src/tiny/data\.py, which is one of the lab's tests"):
        source_file(load_labs(project)[0], spec)


def test_steps_are_found_also_where_a_lab_does_not_say_what_they_look_like(tiny_project):
    path = tiny_project / "lab/lab.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("step_line:")]
    path.write_text("\n".join(lines))
    found = re.search(load_lab(path).step_line, "epoch 1 | Step 12 | loss 0.17")
    assert found is not None
    assert found["step"] == "12"


def test_torch_is_preloaded_unless_the_lab_says_what_is(tiny_project):
    path = tiny_project / "lab/lab.yaml"
    assert load_lab(path).preload == ()
    edit(path, "preload: []\n", "")
    assert load_lab(path).preload[:2] == ("torch", "torch.distributed")


def test_file_of_a_break_must_lie_in_the_source_after_resolving_links(tiny_project, tmp_path):
    project = find_project(tiny_project)
    lab = load_labs(project)[0]
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    link = tiny_project / "lab/src/tiny/link.py"
    link.symlink_to(outside)
    spec_path = tiny_project / "breaks/35-01.yaml"
    for file, message in [
        ("src/tiny/link.py", "which is outside the lab's source"),
        ("lab.yaml", "which is outside the lab's source"),
        ("src/tiny/none.py", "which the lab does not have"),
        ("src/tiny", "which the lab does not have"),
    ]:
        old = load_catalogue(project).find("35-01").inject.file
        edit(spec_path, f"file: {old}", f"file: {file}")
        with pytest.raises(ProjectError, match=message):
            source_file(lab, load_catalogue(project).find("35-01"))
    link.unlink()
    link.symlink_to("data.py")
    edit(spec_path, "file: src/tiny", "file: src/tiny/link.py")
    found = source_file(lab, load_catalogue(project).find("35-01"))
    assert found == tiny_project / "lab/src/tiny/data.py"


def test_catalogue_is_in_order_of_ids_and_finds_slugs(tiny_project):
    text = (tiny_project / "breaks/35-02.yaml").read_text()
    for bug_id in ("4-10", "35-100"):
        other = text.replace("35-02", bug_id).replace("short-mean", f"slug-{bug_id}")
        (tiny_project / f"breaks/{bug_id}.yaml").write_text(other)
    catalogue = load_catalogue(find_project(tiny_project))
    assert list(catalogue.specs) == ["4-10", "35-01", "35-02", "35-100"]
    assert catalogue.find("short-shard").bug_id == "35-01"


def test_one_broken_spec_keeps_no_other_from_being_used(tiny_project):
    broken = tiny_project / "breaks/35-02.yaml"
    edit(broken, "slug:", "slugs:")
    catalogue = load_catalogue(find_project(tiny_project))
    assert catalogue.find("35-01").slug == "short-shard"
    assert list(catalogue.broken) == [broken]
    with pytest.raises(SpecError, match="unknown key `slugs`"):
        catalogue.find("35-02")
    broken.rename(tiny_project / "breaks/a-name.yaml")
    with pytest.raises(SpecError, match="unknown key `slugs`"):
        load_catalogue(find_project(tiny_project)).find("35-02")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("35-011", "did you mean 35-01? all breaks: breaklab list"),
        ("shortshard", "did you mean 35-01? all breaks: breaklab list"),
        ("zzz", "all breaks: breaklab list"),
    ],
)
def test_unknown_break_suggests_the_nearest(tiny_project, asked, hint):
    with pytest.raises(ProjectError) as caught:
        load_catalogue(find_project(tiny_project)).find(asked)
    assert (caught.value.message, caught.value.hint) == (f"there is no break {asked}", hint)


def test_retired_id_says_why_and_is_never_used_again(tiny_project):
    retired = tiny_project / "breaks/35-00.yaml"
    retired.write_text("format: 1\nbug-id: 35-03\nretired: the lab outgrew it\n")
    edit(tiny_project / "breaks/35-02.yaml", "bug-id: 35-02", "bug-id: 35-03")
    catalogue = load_catalogue(find_project(tiny_project))
    assert list(catalogue.broken) == [tiny_project / "breaks/35-02.yaml"]
    with pytest.raises(ProjectError, match="the break 35-03 is retired: the lab outgrew it"):
        catalogue.find("35-03")


def test_hidden_files_are_no_specs(tiny_project):
    (tiny_project / "breaks/.35-09.yaml.swp.yaml").write_text("x")
    (tiny_project / "breaks/notes.md").write_text("x")
    names = [path.name for path in spec_files(find_project(tiny_project))]
    assert names == ["35-01.yaml", "35-02.yaml"]


def test_catalogue_loads_with_yaml_and_the_standard_library_alone(tiny_project):
    code = (
        "import sys; before = set(sys.modules)\n"
        "from pathlib import Path\n"
        "from breaklab.spec.catalogue import load_catalogue\n"
        "from breaklab.spec.project import find_project\n"
        "assert len(load_catalogue(find_project(Path('.'))).specs) == 2\n"
        "tops = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(tops - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tiny_project,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    loaded = {name for name in done.stdout.split() if not name.startswith(("_cython", "cython"))}
    assert loaded == {"breaklab", "yaml", "_yaml"} or loaded == {"breaklab", "yaml"}


def test_break_named_by_its_file_is_read_without_reading_the_others(tiny_project):
    project = find_project(tiny_project)
    (tiny_project / "breaks/35-02.yaml").write_text("][")
    assert load_named(project, "35-01") == load_catalogue(project).find("35-01")
    for name in ("35-03", "short-shard", "../breaks/35-01", ""):
        assert load_named(project, name) is None
    with pytest.raises(SpecError):
        load_named(project, "35-02")
    (tiny_project / "breaks/35-01.yaml").rename(tiny_project / "breaks/35-03.yaml")
    assert load_named(project, "35-03") is None
