from __future__ import annotations

import pytest

from breaklab.author.lint import lint
from breaklab.author.refresh import refresh
from breaklab.errors import SiteError
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, load_labs
from breaklab.tree.workspace import Workspace

SOURCE = "lab/src/tiny/data.py"


def change(root, old, new, file=SOURCE):
    path = root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refreshed(root, bug_id="35-01", **options):
    project = find_project(root)
    return refresh(project, load_catalogue(project).find(bug_id), **options)


def test_spec_that_is_up_to_date_stays_as_it_is(tiny_project):
    found = refreshed(tiny_project)
    assert (found.changed, found.diff, found.before) == ((), "", found.after)


def test_changed_lab_changes_the_fix_and_nothing_else(tiny_project):
    change(
        tiny_project, '"""Return the numbers of one rank; all', '"""Return what one rank owns; all'
    )
    change(tiny_project, "slug: short-shard", "slug: short-shard  # a comment", "breaks/35-01.yaml")
    found = refreshed(tiny_project)
    assert found.changed == ("fix_diff",)
    lines = [line for line in found.diff.splitlines() if line[0] in "+-"][2:]
    assert lines == [
        '-       """Return the numbers of one rank; all ranks own equally many."""',
        '+       """Return what one rank owns; all ranks own equally many."""',
    ]
    assert "slug: short-shard  # a comment\n" in found.after


def test_written_spec_has_no_findings_and_keeps_its_mode(tiny_project):
    change(tiny_project, "def shard(", "def own_numbers(")
    change(tiny_project, "numbers = list", "all_of_them = list")
    change(tiny_project, "numbers[rank", "all_of_them[rank")
    assert {finding.rule for finding in lint(find_project(tiny_project))} == {"site"}
    path = tiny_project / "breaks/35-01.yaml"
    path.chmod(0o640)
    found = refreshed(tiny_project)
    assert found.changed == ("inject.inside", "inject.find", "fix_diff")
    found.write()
    assert lint(find_project(tiny_project)) == []
    assert path.stat().st_mode & 0o777 == 0o640


def test_nothing_is_left_beside_the_spec(tiny_project):
    change(tiny_project, "def shard(", "def own_numbers(")
    refreshed(tiny_project).write()
    assert sorted(path.name for path in (tiny_project / "breaks").iterdir()) == [
        "35-01.yaml",
        "35-02.yaml",
    ]


def test_site_that_is_gone_is_told_and_nothing_is_written(tiny_project):
    before = (tiny_project / "breaks/35-01.yaml").read_bytes()
    change(tiny_project, "mine = numbers[rank::world_size]", "mine = split(numbers)")
    with pytest.raises(SiteError, match="has no site in `shard`"):
        refreshed(tiny_project)
    assert (tiny_project / "breaks/35-01.yaml").read_bytes() == before


def test_measured_tests_replace_the_list(tiny_project):
    red = ["tests/test_shards.py::test_every_number_is_seen_once"]
    found = refreshed(tiny_project, red=red)
    assert found.changed == ("expect.red",)
    found.write()
    assert load_catalogue(find_project(tiny_project)).find("35-01").red == tuple(red)
    assert refreshed(tiny_project, red=red).changed == ()


def test_applied_break_does_not_confuse_the_fix(tiny_project):
    project = find_project(tiny_project)
    source = tiny_project / SOURCE
    broken = source.read_bytes().replace(b"return mine", b"return mine[:-1]")
    with Workspace.open(project) as workspace:
        workspace.apply(load_labs(project)[0], "35-01", source, broken)
    assert refreshed(tiny_project).changed == ()


def test_spec_without_a_fix_gets_one(tiny_project):
    path = tiny_project / "breaks/35-02.yaml"
    text = path.read_text()
    start, end = text.index("fix_diff:"), text.index("expect:")
    path.write_text(text[:start] + text[end:])
    refreshed(tiny_project, "35-02").write()
    assert lint(find_project(tiny_project)) == []
