"""Code cut out of a source, written as a spec has it: at level 0, four spaces for each level."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from breaklab.inject.layout import indent_at
from breaklab.inject.source import NEWLINE, Source


def code_of(source: Source, nodes: Sequence[cst.CSTNode]) -> str:
    """Return the code of consecutive nodes."""
    return excerpt(source, source.span(nodes[0])[0], source.span(nodes[-1])[1])


def excerpt(source: Source, start: int, end: int) -> str:
    """Return the text from one offset to another; the first line begins with its first code."""
    indent, unit = indent_at(source.text, start), source.module.default_indent
    first = source.line_at(start)
    inner = source.string_lines
    lines = NEWLINE.split(source.text[start:end])
    for index in range(1, len(lines)):
        if first + index in inner:
            continue
        rest = lines[index].removeprefix(indent)
        levels = 0
        while unit and rest.startswith(unit):
            rest, levels = rest[len(unit) :], levels + 1
        lines[index] = "    " * levels + rest if rest.strip() else ""
    return "\n".join(lines)
