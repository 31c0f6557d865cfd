"""Print to people (prose, tables, marks) and to programs (JSON), on a terminal or into a pipe.

Nothing printed here is read as markup, and every text is cleaned of terminal escapes first. On a
terminal prose wraps at its width; in a pipe each paragraph is one line and a table is plain
columns, so that ``grep`` and ``cut`` see whole sentences. A colour never carries meaning alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text as StyledText

from breaklab.cli.text import clean, one_line

STYLES = {
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "strong": "bold",
    "quiet": "dim",
    "rank": "cyan",
}
_PIPE_WIDTH = 1_000_000  # wide enough that rich never wraps
_MAX_PROSE = 100  # longer lines are hard to read, however wide the terminal


@dataclass(frozen=True)
class Column:
    """One column of a table: its heading, a style, and whether it may wrap on a terminal."""

    heading: str
    style: str = ""
    wrap: bool = False


class Screen:
    """Where a command prints: results to standard output, errors and remarks to standard error."""

    def __init__(self, *, no_color: bool = False) -> None:
        self._out = _console(stderr=False, no_color=no_color)
        self._err = _console(stderr=True, no_color=no_color)

    @property
    def is_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return self._out.is_terminal

    @property
    def width(self) -> int:
        """Return the columns that a line may take; practically unlimited in a pipe."""
        return self._out.width

    def line(self, text: str = "", style: str = "", *, err: bool = False) -> None:
        """Print one line of text as it is, unwrapped by us."""
        _print(self._err if err else self._out, text, style)

    def prose(self, text: str, style: str = "", *, indent: int = 0, err: bool = False) -> None:
        """Print paragraphs: on a terminal wrapped to its width, in a pipe as they are."""
        console = self._err if err else self._out
        for paragraph in clean(text).rstrip().split("\n"):
            lines = _wrap(console, paragraph, indent)
            for each in lines or [""]:
                _print(console, " " * indent * bool(each) + each, style)

    def heading(self, text: str) -> None:
        """Print a line that names what follows."""
        self.line(text, "strong")

    def listing(self, text: str, *, styles: dict[str, str] | None = None) -> None:
        """Print code or a diff; a line is styled by its first character."""
        for each in clean(text).rstrip("\n").split("\n"):
            _print(self._out, "    " + each, (styles or {}).get(each[:1], ""))

    def run_next(self, *commands: tuple[str, str]) -> None:
        """Print commands to run next, each with what it is for, aligned."""
        if not commands:
            return
        width = max(len(command) for command, _purpose in commands)
        for command, purpose in commands:
            text = StyledText("  ")
            text.append(clean(command).ljust(width), STYLES["strong"])
            text.append("  " + one_line(purpose))
            self._out.print(text, soft_wrap=True)

    def fields(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Print names and values, one pair a line, values aligned."""
        width = max(len(name) for name, _value in pairs) + 1
        for name, value in pairs:
            lines = _wrap(self._out, one_line(value), width + 1) or [""]
            self.line(f"{name + ':':<{width}} {lines[0]}")
            for each in lines[1:]:
                self.line(" " * (width + 1) + each)

    def marked(self, mark: str, text: str) -> None:
        """Print a mark such as ``ok`` or ``FAIL``, coloured by what it means, before a text."""
        line = StyledText(f"{mark:<5} ", STYLES.get(cell_style(mark), ""))
        line.append(one_line(text), "default")
        self._out.print(line, soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Print rows under headings; on a terminal one column may wrap, in a pipe none does."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        headings = [column.heading for column in columns]
        widths = [max(map(len, each)) for each in zip(headings, *cells, strict=True)]
        _shrink(columns, widths, self.width)
        self._row(columns, widths, headings, heading=True)
        for row in cells:
            self._row(columns, widths, row)

    def _row(
        self,
        columns: Sequence[Column],
        widths: Sequence[int],
        cells: Sequence[str],
        *,
        heading: bool = False,
    ) -> None:
        parts = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for index in range(max(map(len, parts))):
            text = StyledText()
            for column, width, part in zip(columns, widths, parts, strict=True):
                cell = part[index] if index < len(part) else ""
                style = "strong" if heading else column.style or cell_style(cell)
                text.append(cell.ljust(width), STYLES.get(style, style))
                text.append("  ")
            text.rstrip()
            self._out.print(text, soft_wrap=True)

    def json(self, value: Any) -> None:
        """Print one JSON document."""
        self._out.file.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")
        self._out.file.flush()

    def error(self, label: str, message: str, hint: str = "") -> None:
        """Print what went wrong and, below it, what to do about it, to standard error."""
        head, _newline, rest = clean(message).partition("\n")
        self.prose(f"{label}: {head}", "bad", err=True)
        if rest:
            self.prose(rest, err=True)
        if hint:
            self.prose(hint, err=True)


def cell_style(cell: str) -> str:
    """Return the style of a mark such as ``ok`` or ``FAIL``; the word itself says the same."""
    return {"ok": "good", "warn": "warn", "FAIL": "bad"}.get(cell, "")


def _console(*, stderr: bool, no_color: bool) -> Console:
    console = Console(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        no_color=no_color or None,
    )
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _print(console: Console, text: str, style: str) -> None:
    console.print(StyledText(clean(text), STYLES.get(style, style)), soft_wrap=True)


def _wrap(console: Console, paragraph: str, indent: int) -> list[str]:
    """Wrap one paragraph to the console's width less ``indent``; a pipe gets it unwrapped."""
    room = min(console.width, _MAX_PROSE if console.is_terminal else console.width) - indent
    return _fold(paragraph, max(room, 20)) if paragraph.strip() else []


def _fold(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text.rstrip()]
    import textwrap  # only long lines pay for it

    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _shrink(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Take what is too much from the columns that may wrap, in place."""
    excess = sum(widths) + 2 * (len(widths) - 1) - room
    for index, column in enumerate(columns):
        if excess > 0 and column.wrap:
            narrowed = max(widths[index] - excess, 16)
            excess -= widths[index] - narrowed
            widths[index] = narrowed
