"""The generated pages are what the specs say now, and links in the documents lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "labs").rglob("*.md")]


def test_the_pages_about_the_breaks_are_current():
    path = ROOT / "scripts" / "break_pages.py"
    spec = importlib.util.spec_from_file_location("break_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for page, text in module.pages().items():
        assert page.read_text(encoding="utf-8") == text, "run python scripts/break_pages.py"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_links_to_is_there(document):
    text = document.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    for target in targets:
        if "://" not in target:
            assert (document.parent / target).exists(), target
