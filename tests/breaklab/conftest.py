"""What the tool's tests share: a copy of a tiny project whose lab needs no torch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

collect_ignore = ["fixtures"]

TINY_PROJECT = Path(__file__).parent / "fixtures" / "tiny_project"


@pytest.fixture
def tiny_project(tmp_path: Path) -> Path:
    """The root of a fresh copy of the tiny project."""
    root = tmp_path / "tiny"
    shutil.copytree(TINY_PROJECT, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root
