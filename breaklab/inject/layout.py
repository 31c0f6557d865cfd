"""Indentation and newlines of code that is put into a source, or moved within one."""

from __future__ import annotations

import re
from collections.abc import Collection

from breaklab.i18n import _
from breaklab.inject.pattern import spelled
from breaklab.inject.source import NEWLINE, Source, parse_source

_INDENT = re.compile(r"[ \t\f]*")
_SPEC_INDENT = 4  # spaces that new code in a spec uses for one level


def line_start(text: str, offset: int) -> int:
    """Return the offset of the first character of the line that ``offset`` is in."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def indent_at(text: str, offset: int) -> str:
    """Return the white space that the line around ``offset`` begins with."""
    match = _INDENT.match(text, line_start(text, offset))
    return match[0] if match else ""


def newline_at(source: Source, start: int, end: int) -> str:
    """Return the newline that the text from ``start`` to ``end`` uses, else the module's."""
    match = NEWLINE.search(source.text, start, end)
    return match[0] if match else source.module.default_newline


def indented(code: str, indent: str, unit: str, newline: str) -> str:
    """Return code of a spec with its levels of four spaces turned into those of a site.

    Args:
        code: statements at level 0, lines ended by any newline.
        indent: what the site's lines begin with.
        unit: what the module adds for each level.
        newline: what ends the site's lines.

    Raises:
        SiteError: the code is no Python.
    """
    inner = parse_source(spelled(code) + "\n", _("the new code")).string_lines
    lines = []
    for number, line in enumerate(NEWLINE.split(code), start=1):
        if number in inner:
            lines.append(line)
            continue
        bare = line.lstrip(" ")
        levels, rest = divmod(len(line) - len(bare), _SPEC_INDENT)
        lines.append(indent + unit * levels + " " * rest + bare if line.strip() else "")
    return newline.join(lines)


def reindented(text: str, old: str, new: str, keep: Collection[int] = ()) -> str:
    """Return ``text`` with the indentation ``old`` of its lines after the first made ``new``.

    Args:
        text: code cut out of a source, its first line without indentation.
        old: what the line that it began in begins with.
        new: what the line that it goes to begins with.
        keep: lines, the first being 1, that begin inside a string and must stay as they are.
    """
    parts = re.split(f"({NEWLINE.pattern})", text)
    for index in range(2, len(parts), 2):
        line = parts[index]
        if index // 2 + 1 not in keep and line.strip() and line.startswith(old):
            parts[index] = new + line[len(old) :]
    return "".join(parts)
