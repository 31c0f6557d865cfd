"""Run the command line in this process, in a copy of the tiny project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from breaklab.cli.app import build_app
from breaklab.i18n import set_language


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _plain_english(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("BREAKLAB_LANG", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    yield
    set_language("en")


@pytest.fixture
def breaklab(tiny_project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run ``breaklab ARGS`` in the tiny project; no traceback may ever be on screen."""
    monkeypatch.chdir(tiny_project)

    def run(*args: str, code: int | None = 0, language: str = "en") -> Ran:
        result = CliRunner().invoke(build_app(language), list(args))
        ran = Ran(result.exit_code, result.stdout, result.stderr)
        assert "\nTraceback" not in f"\n{ran.out}\n{ran.err}"  # a rank's own has its prefix
        assert code is None or ran.code == code, ran.out + ran.err
        return ran

    return run
