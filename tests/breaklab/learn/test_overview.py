"""The kept overview never shows another catalogue than the one on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from breaklab.learn import overview
from breaklab.learn.overview import load_overview
from breaklab.model import Project
from breaklab.spec.project import find_project


@pytest.fixture
def project(tiny_project: Path) -> Project:
    return find_project(tiny_project)


def symptoms(project: Project) -> dict[str, str]:
    return {row.bug_id: row.symptom_in("en") for row in load_overview(project).rows}


def test_the_second_time_no_spec_is_parsed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_overview(project)
    monkeypatch.setattr(overview, "load_catalogue", lambda project: pytest.fail("parsed again"))
    assert load_overview(project) == first
    assert [row.bug_id for row in first.rows] == ["35-01", "35-02"]


def test_a_changed_an_added_and_a_removed_spec_are_seen(project: Project) -> None:
    (folder,) = project.breaks
    before = symptoms(project)
    spec = folder / "35-02.yaml"
    text = spec.read_text()
    spec.write_text(text.replace("the loss is larger", "the loss is smaller, very much"))
    assert symptoms(project)["35-02"].startswith("the loss is smaller")
    (folder / "35-03.yaml").write_text(text.replace("bug-id: 35-02", "bug-id: 35-03"))
    assert sorted(symptoms(project)) == ["35-01", "35-02", "35-03"]
    (folder / "35-03.yaml").unlink()
    spec.write_text(text)
    assert symptoms(project) == before


def test_a_spec_that_cannot_be_used_is_told_each_time(project: Project) -> None:
    load_overview(project)
    broken = project.breaks[0] / "35-03.yaml"
    broken.write_text("format: 1\n")
    for _ in range(2):
        assert list(load_overview(project).broken) == [broken]


@pytest.mark.parametrize(
    "kept", ["", "[]", "{}", '{"format": 99, "stamps": {}, "rows": []}', '{"format": 1}']
)
def test_a_kept_file_of_another_form_is_not_used(project: Project, kept: str) -> None:
    load_overview(project)
    (project.state_dir / "cache" / "overview.json").write_text(kept)
    assert sorted(symptoms(project)) == ["35-01", "35-02"]
