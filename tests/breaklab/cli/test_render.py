"""What a screen prints on a terminal of a given width and into a pipe."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from breaklab.cli import render
from breaklab.cli.render import Column, Screen

LONG = "every rank waits for the others " * 8


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make both streams terminals of a given width, without colours."""

    def become(width: int) -> None:
        monkeypatch.setattr(render, "_is_terminal", lambda stream: True)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")

    return become


def test_prose_in_a_pipe_is_one_line_for_each_paragraph(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.prose(LONG + "\n\nsecond", indent=2)
    assert capsys.readouterr().out == f"  {LONG.rstrip()}\n\n  second\n"


def test_prose_on_a_terminal_stays_inside_its_width(
    screen: Screen, capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]
) -> None:
    terminal(40)
    screen.prose(LONG, indent=4)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert all(len(line) <= 40 and line.startswith("    ") for line in lines)


def test_table_on_a_terminal_wraps_only_the_column_that_may(
    screen: Screen, capsys: pytest.CaptureFixture[str], terminal: Callable[[int], None]
) -> None:
    terminal(50)
    screen.table(
        [Column("ID"), Column("SYMPTOM", wrap=True)], [("35-01", LONG), ("35-02", "short")]
    )
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 50 for line in lines)
    assert lines[1].startswith("35-01  every rank")
    assert lines[2].startswith("       ")
    assert lines[-1] == "35-02  short"


def test_table_in_a_pipe_keeps_each_row_on_one_line(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.table([Column("ID"), Column("SYMPTOM", wrap=True)], [("35-01", LONG)])
    assert capsys.readouterr().out == f"ID     SYMPTOM\n35-01  {LONG.rstrip()}\n"


@pytest.mark.parametrize(
    "text", ["[bold]x[/bold]", "[link=http://evil]x[/link]", ":smile:", "[/]", "[rank=0] step 1"]
)
def test_markup_in_foreign_text_is_printed_as_it_is(
    screen: Screen, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    screen.line(text)
    screen.prose(text)
    screen.marked("ok", text, text)
    screen.table([Column("A")], [(text,)])
    out = capsys.readouterr().out
    assert out.count(text) == 5


def test_escapes_in_foreign_text_do_not_reach_the_terminal(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;title\x07\x1b[31mtext"
    screen.line(evil)
    screen.prose(evil)
    screen.marked("ok", evil, evil)
    screen.fields([("name", evil)])
    screen.run_next((evil, evil))
    screen.listing(evil, {})
    screen.error("Error", evil, evil)
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    assert "\x07" not in captured.out + captured.err
    assert "title" not in captured.out + captured.err


def test_colour_is_used_on_a_terminal_and_not_with_no_color(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Screen().line("red", "bad")
    assert "\x1b[" in capsys.readouterr().out
    Screen(no_color=True).line("red", "bad")
    assert "31m" not in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    Screen().line("red", "bad")
    assert "31m" not in capsys.readouterr().out


def test_json_is_one_document_with_letters_kept(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.json({"symptom": "p\u00e9rdida \u2264 1", "markup": "[bold]"})
    out = capsys.readouterr().out
    assert "p\u00e9rdida" in out
    assert json.loads(out) == {"symptom": "p\u00e9rdida \u2264 1", "markup": "[bold]"}


def test_an_error_goes_to_standard_error_with_its_remedy_below(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.error("Error", "first\nsecond", "do this")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "Error: first\nsecond\ndo this\n"
