"""schema: the same text on screen and on disk, where the editor line of a spec looks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breaklab.spec.schema import spec_schema, spec_schema_text

Breaklab = Callable[..., Any]


def test_the_schema_is_printed_also_outside_a_project(
    breaklab: Breaklab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert breaklab("schema").json == spec_schema()


@pytest.mark.parametrize("target", ["breaks/schema.json", "breaks"])
def test_it_is_written_where_the_editor_line_of_a_new_spec_finds_it(
    breaklab: Breaklab, tiny_project: Path, target: str
) -> None:
    path = tiny_project / "breaks" / "schema.json"
    path.unlink(missing_ok=True)
    breaklab("schema", "--write", target)
    assert path.read_text() == spec_schema_text()
    (spec,) = [breaklab("new", "35-40", "--json").json["path"]]
    first = Path(spec).read_text().splitlines()[0]
    assert (Path(spec).parent / first.partition("$schema=")[2]).resolve() == path.resolve()
    assert "breaklab schema" not in breaklab("new", "35-41").out


def test_a_folder_that_does_not_exist_is_told(breaklab: Breaklab) -> None:
    err = breaklab("schema", "--write", "nowhere/schema.json", code=2).err
    assert "nowhere does not exist" in err
