"""The command line as a whole: help, version, language, colours, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import breaklab as package
from breaklab.cli.commands import MODULES

Breaklab = Callable[..., Any]


def process(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "breaklab", *args],
        cwd=cwd,
        env={**os.environ, "LANG": "C.UTF-8", **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", MODULES)
def test_every_command_has_help_with_an_example_inside_80_columns(
    breaklab: Breaklab, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = breaklab(command, "--help").out
    assert f"\n    breaklab {command}" in out.partition("Example")[2]
    assert max(map(len, out.splitlines())) <= 80


def test_help_lists_every_command_with_an_unbroken_sentence(
    breaklab: Breaklab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = breaklab("--help").out
    assert max(map(len, out.splitlines())) <= 80
    commands = out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in commands] == list(MODULES)
    assert all(line.endswith(".") and not line.endswith("...") for line in commands), commands


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 70, 130])
def test_help_documents_every_exit_code(breaklab: Breaklab, code: int) -> None:
    table = breaklab("--help").out.partition("Exit codes:")[2].splitlines()
    assert any(line.split()[:1] == [str(code)] for line in table)


def test_without_a_command_help_is_shown_and_exits_2(breaklab: Breaklab) -> None:
    ran = breaklab(code=2)
    assert "Exit codes:" in ran.out + ran.err


def test_version_is_the_packages(breaklab: Breaklab) -> None:
    assert breaklab("--version").out == f"breaklab {package.__version__}\n"


@pytest.mark.parametrize(
    ("env", "args", "spanish"),
    [
        ({"LANG": "es_MX.UTF-8"}, [], True),
        ({"LANG": "de_DE.UTF-8"}, [], False),
        ({"LANG": "es_ES.UTF-8", "LC_ALL": "C.UTF-8"}, [], False),
        ({"LANG": "es_ES.UTF-8", "BREAKLAB_LANG": "en"}, [], False),
        ({"BREAKLAB_LANG": "es"}, [], True),
        ({"BREAKLAB_LANG": "es"}, ["--lang", "en"], False),
        ({}, ["--lang", "es"], True),
    ],
)
def test_language_comes_from_the_option_then_the_variable_then_the_locale(
    tiny_project: Path, env: dict[str, str], args: list[str], spanish: bool
) -> None:
    done = process("list", *args, cwd=tiny_project, **{"LC_ALL": "", "BREAKLAB_LANG": "", **env})
    assert ("el entrenamiento se detiene" in done.stdout) is spanish
    assert ("training stands still" in done.stdout) is not spanish


def test_output_into_a_pipe_holds_no_escapes_and_no_wrapped_rows(tiny_project: Path) -> None:
    done = process("list", cwd=tiny_project, COLUMNS="40")
    assert "\x1b" not in done.stdout
    assert 'right after "starting all-reduce"\n' in done.stdout


def test_a_letter_that_the_output_cannot_encode_becomes_a_question_mark(
    tiny_project: Path,
) -> None:
    spec = tiny_project / "breaks" / "35-02.yaml"
    spec.write_text(spec.read_text().replace("the loss is larger", "loss \u2192 larger"))
    done = process("list", cwd=tiny_project, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "loss ? larger" in done.stdout


def complete(words: str, cwd: Path) -> list[str]:
    """What bash would offer for the last word of ``words``."""
    count = str(len(words.split(" ")) - 1)
    done = process(cwd=cwd, _BREAKLAB_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)
    return done.stdout.split()


def test_completion_offers_commands_ids_variants_and_families(
    tiny_project: Path, breaklab: Breaklab
) -> None:
    assert complete("breaklab rev", tiny_project) == ["revert", "reveal"]
    assert complete("breaklab hint ", tiny_project) == ["35-01", "35-02"]
    assert complete("breaklab apply --random --family s", tiny_project) == ["sharding"]
    breaklab("apply", "35-01")
    assert complete("breaklab run --variant s", tiny_project) == ["stall", "silent"]


def test_completion_outside_a_project_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    done = process(
        cwd=tmp_path,
        _BREAKLAB_COMPLETE="complete_bash",
        COMP_WORDS="breaklab hint ",
        COMP_CWORD="2",
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_reader_that_closes_the_pipe_ends_breaklab_quietly(tiny_project: Path) -> None:
    for number in range(3, 80):
        text = (tiny_project / "breaks" / "35-01.yaml").read_text()
        text = text.replace("bug-id: 35-01", f"bug-id: 35-{number:02}")
        text = text.replace("training stands still", "training stands still " * 60)
        (tiny_project / "breaks" / f"35-{number:02}.yaml").write_text(text)
    command = f"'{sys.executable}' -m breaklab list | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tiny_project, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "141"
    assert done.stderr == ""
