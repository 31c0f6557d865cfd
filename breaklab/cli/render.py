"""Print to people (prose, tables, marks) and to programs (JSON), on a terminal or into a pipe.

Nothing printed here is read as markup, and every text is cleaned of terminal escapes first. On a
terminal prose wraps at its width; in a pipe each paragraph is one line and a table is plain
columns, so that ``grep`` and ``cut`` see whole sentences. A colour never carries meaning alone.

Needs typer only: importing rich costs as long as a whole ``breaklab hint``.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any, TextIO

import typer

from breaklab.cli.text import clean, one_line

_STYLES: dict[str, dict[str, Any]] = {
    "good": {"fg": "green"},
    "bad": {"fg": "red", "bold": True},
    "warn": {"fg": "yellow"},
    "strong": {"bold": True},
    "quiet": {"dim": True},
}
_MARKS = {"ok": "good", "warn": "warn", "FAIL": "bad"}
_MAX_PROSE = 100  # columns; longer lines are hard to read, however wide the terminal
_MIN_PROSE = 20
_MIN_COLUMN = 16
_MARKED_INDENT = 19


@dataclass(frozen=True)
class Column:
    """One column of a table: its heading, a style, and whether it may wrap on a terminal."""

    heading: str
    style: str = ""
    wrap: bool = False


class Screen:
    """Where a command prints: results to standard output, errors and remarks to standard error."""

    def __init__(self, *, no_color: bool = False) -> None:
        self._no_color = no_color

    @property
    def is_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return _is_terminal(sys.stdout)

    @property
    def no_color(self) -> bool:
        """Whether results are printed without colours."""
        return self._no_color or not _wants_color(sys.stdout)

    def line(self, text: str = "", style: str = "", *, err: bool = False) -> None:
        """Print one line of text, not wrapped."""
        self._print([(clean(text), style)], err=err)

    def prose(self, text: str, style: str = "", *, indent: int = 0, err: bool = False) -> None:
        """Print paragraphs: on a terminal wrapped to its width, in a pipe as they are."""
        for paragraph in clean(text).rstrip().split("\n"):
            for line in _wrap(paragraph, indent, err=err):
                self._print([(" " * indent + line if line else "", style)], err=err)

    def heading(self, text: str) -> None:
        """Print a line that names what follows."""
        self.line(text, "strong")

    def marked(self, mark: str, name: str, text: str) -> None:
        """Print a mark such as ``ok`` or ``FAIL``, coloured by its meaning, a name and a text."""
        parts = [(f"{mark:<5} ", _MARKS.get(mark, "")), (f"{clean(name):<12} ", "")]
        first, *rest = _wrap(one_line(text), _MARKED_INDENT)
        self._print([*parts, (first, "")])
        for line in rest:
            self._print([(" " * _MARKED_INDENT + line, "")])

    def listing(self, text: str, styles: dict[str, str]) -> None:
        """Print code or a diff; a line is styled by its first character."""
        for line in clean(text).rstrip("\n").split("\n"):
            self._print([("    " + line, styles.get(line[:1], ""))])

    def run_next(self, *commands: tuple[str, str]) -> None:
        """Print commands to run next, each with what it is for, aligned."""
        width = max((len(command) for command, _purpose in commands), default=0)
        for command, purpose in commands:
            named = "  " + clean(command).ljust(width)
            self._print([(named, "strong"), ("  " + one_line(purpose), "")])

    def fields(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Print names and values, one pair a line, values aligned."""
        width = max(len(name) for name, _value in pairs) + 1
        for name, value in pairs:
            first, *rest = _wrap(one_line(value), width + 1)
            self.line(f"{name + ':':<{width}} {first}")
            for line in rest:
                self.line(" " * (width + 1) + line)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Print rows under headings; on a terminal one column may wrap, in a pipe none does."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        headings = [column.heading for column in columns]
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        if _is_terminal(sys.stdout):
            _shrink(columns, widths, _width())
        self._row(widths, headings, ["strong"] * len(columns))
        for row in cells:
            self._row(widths, row, [column.style for column in columns])

    def json(self, value: Any) -> None:
        """Print one JSON document."""
        typer.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))

    def error(self, label: str, message: str, hint: str = "") -> None:
        """Print what went wrong and, below it, what to do about it, to standard error."""
        head, _newline, rest = clean(message).partition("\n")
        self.prose(f"{label}: {head}", "bad", err=True)
        for text in (rest, hint):
            if text:
                self.prose(text, err=True)

    def _row(self, widths: Sequence[int], cells: Sequence[str], styles: Sequence[str]) -> None:
        parts = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for index in range(max(map(len, parts))):
            line = [part[index] if index < len(part) else "" for part in parts]
            last = max((place for place, cell in enumerate(line) if cell), default=0)
            padded = [cell.ljust(width) + "  " for cell, width in zip(line, widths, strict=True)]
            padded[last] = line[last]
            self._print(list(zip(padded[: last + 1], styles, strict=False)))

    def _print(self, parts: Iterable[tuple[str, str]], *, err: bool = False) -> None:
        """Print one line of parts that are clean, each in a style of ``_STYLES``."""
        color = not self._no_color and _wants_color(sys.stderr if err else sys.stdout)
        if color:
            text = "".join(
                typer.style(part, **_STYLES[style]) if style and part else part
                for part, style in parts
            )
        else:
            text = "".join(part for part, _style in parts)
        typer.echo(text, err=err, color=color)


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


def _wants_color(stream: TextIO) -> bool:
    """Follow no-color.org and force-color.org, else colour a terminal that is not dumb."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return _is_terminal(stream) and os.environ.get("TERM") != "dumb"


def _width() -> int:
    return get_terminal_size().columns


def _wrap(paragraph: str, indent: int, *, err: bool = False) -> list[str]:
    """Wrap one paragraph to the terminal's width less ``indent``; a pipe gets it as it is."""
    if not _is_terminal(sys.stderr if err else sys.stdout):
        return [paragraph.rstrip()]
    return _fold(paragraph.rstrip(), max(min(_width(), _MAX_PROSE) - indent, _MIN_PROSE))


def _fold(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _shrink(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Take what is too much from the columns that may wrap, in place."""
    excess = sum(widths) + 2 * (len(widths) - 1) - room
    for index, column in enumerate(columns):
        if excess > 0 and column.wrap:
            narrowed = max(widths[index] - excess, _MIN_COLUMN)
            excess -= widths[index] - narrowed
            widths[index] = narrowed
