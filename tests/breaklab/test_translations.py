"""Every message of breaklab is translated, nothing stale is kept, and what is shipped is that."""

from __future__ import annotations

import importlib.util
import os
import string
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from breaklab.cli.translated import library_words

REPO = Path(__file__).resolve().parents[2]


def load_script() -> ModuleType:
    path = REPO / "scripts" / "update_catalogue.py"
    spec = importlib.util.spec_from_file_location("update_catalogue", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pytest.importorskip("babel")
catalogue = load_script()
languages = pytest.mark.parametrize("language", catalogue.LANGUAGES)


def ids(messages: object) -> set[object]:
    return {message.id for message in messages if message.id}  # type: ignore[attr-defined]


@languages
def test_no_message_is_untranslated(language: str) -> None:
    assert catalogue.untranslated(catalogue.up_to_date(language)) == []


@languages
def test_no_translation_is_of_a_message_that_is_gone(language: str) -> None:
    assert ids(catalogue.load(language)) - ids(catalogue.source_catalogue()) == set()


@languages
def test_every_placeholder_is_in_the_translation(language: str) -> None:
    def fields(text: str) -> list[str]:
        try:
            return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)
        except ValueError:  # braces that are no placeholders
            return [text[at] for at in range(len(text)) if text[at] in "{}"]

    wrong = []
    for message in catalogue.load(language):
        plural = isinstance(message.id, tuple)
        for original in message.id if plural else (message.id,):
            for translated in message.string if plural else (message.string,):
                if message.id and fields(original) != fields(translated):
                    wrong.append((original, translated))
    assert not wrong


@languages
def test_the_compiled_catalogue_is_made_from_the_edited_one(language: str) -> None:
    path = catalogue.po_path(language)
    assert path.with_suffix(".mo").read_bytes() == catalogue.mo_bytes(catalogue.load(language))


def test_a_message_without_a_translation_is_found() -> None:
    made_up = catalogue.Catalog(locale="es")
    made_up.add("new", "")
    made_up.add(("one", "many"), ("uno", ""))
    made_up.add("done", "hecho")
    assert sorted(catalogue.untranslated(made_up)) == ["new", "one"]


def test_the_words_taken_from_typer_are_still_typers() -> None:
    import typer

    folder = Path(typer.__file__).parent
    source = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    assert [word for word in library_words() if f'_("{word}")' not in source] == []


@pytest.mark.parametrize("command", ["", "hint", "run", "verify"])
def test_help_is_in_spanish_throughout(tmp_path: Path, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "breaklab", "--lang", "es", *command.split(), "--help"],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Uso: breaklab ")
    assert "Opciones:\n" in done.stdout
    assert "Muestra este mensaje y termina." in done.stdout
    for english in ("Usage", "Options", "Show ", "Commands", "Arguments:", "default:", "Example"):
        assert english not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
