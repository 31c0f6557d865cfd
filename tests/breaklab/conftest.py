"""What the tool's tests share: a copy of a tiny project whose lab needs no torch."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import hypothesis
import pytest

collect_ignore = ["fixtures"]

# CI tries the same inputs each time; other inputs are for fuzzing (HYPOTHESIS_PROFILE=search).
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("search", print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

TINY_PROJECT = Path(__file__).parent / "fixtures" / "tiny_project"


@pytest.fixture
def tiny_project(tmp_path: Path) -> Path:
    """The root of a fresh copy of the tiny project."""
    root = tmp_path / "tiny"
    shutil.copytree(TINY_PROJECT, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def committed(tiny_project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny project, committed to a git repository of its own."""
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for args in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *args], cwd=tiny_project, check=True)
    return tiny_project
