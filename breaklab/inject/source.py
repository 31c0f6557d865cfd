"""A parsed source, and where each of its nodes lies in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import libcst as cst
from libcst.metadata import CodePosition, MetadataWrapper, PositionProvider

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.guard import check_parseable
from breaklab.inject.walk import children, walk

NEWLINE = re.compile(r"\r\n?|\n")
_SHOWN = 60  # characters of code in a message


class Source:
    """A module of Python with the place of every node in its text.

    Raises:
        libcst.ParserSyntaxError: the text is no Python.
    """

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._ranges = wrapper.resolve(PositionProvider)
        self._lines = _aligned(text, self.module.code)

    @cached_property
    def definitions(self) -> dict[str, list[cst.CSTNode]]:
        """The functions and classes by dotted name, in the order of the source."""
        found: dict[str, list[cst.CSTNode]] = {}
        for name, node in _definitions(self.module, ""):
            found.setdefault(name, []).append(node)
        return found

    @cached_property
    def string_lines(self) -> frozenset[int]:
        """The lines, from 1, that begin inside a string."""
        lines: set[int] = set()
        for node in walk(self.module):
            if isinstance(node, cst.SimpleString | cst.FormattedString):
                start, end = self.span(node)
                first = self.line(node) + 1
                lines.update(range(first, first + len(NEWLINE.findall(self.text[start:end]))))
        return frozenset(lines)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the offset of a node's first character in the text, and the one behind it.

        Decorators belong to what they decorate; parentheses around an expression do not.
        """
        first = node
        if isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
            first = node.decorators[0]
        return self._offset(self._ranges[first].start), self._end(node)

    def _end(self, node: cst.CSTNode) -> int:
        end = self._offset(self._ranges[node].end)
        if isinstance(node, cst.Param):  # LibCST's range of a parameter is that of its name
            last = node.default or (node.annotation.annotation if node.annotation else None)
            if last is not None:
                end = self._end(last)
                for _paren in last.rpar:
                    end = self.text.index(")", end) + 1
        return end

    def _offset(self, place: CodePosition) -> int:
        return self._lines[place.line - 1][1] + place.column

    def line(self, node: cst.CSTNode) -> int:
        """Return the line that a node starts on, from 1."""
        return self._lines[self._ranges[node].start.line - 1][0]

    def line_at(self, offset: int) -> int:
        """Return the line, from 1, that an offset of the text is in."""
        return len(NEWLINE.findall(self.text[:offset])) + 1

    def code(self, nodes: Sequence[cst.CSTNode]) -> str:
        """Return the text from the first of ``nodes`` to the end of the last."""
        if not nodes:
            return ""
        return self.text[self.span(nodes[0])[0] : self.span(nodes[-1])[1]]

    def shown(self, node: cst.CSTNode) -> str:
        """Return a node's first line, shortened for a message."""
        first = next(iter(self.code([node]).splitlines()), "")
        return first if len(first) <= _SHOWN else first[: _SHOWN - 3] + "..."


def _definitions(node: cst.CSTNode, prefix: str) -> Iterator[tuple[str, cst.CSTNode]]:
    """Yield every function and class with its dotted name."""
    for child in children(node):
        if isinstance(child, cst.FunctionDef | cst.ClassDef):
            name = prefix + child.name.value
            yield name, child
            yield from _definitions(child, f"{name}.")
        elif not isinstance(child, cst.BaseExpression | cst.SimpleStatementLine):
            yield from _definitions(child, prefix)


def _aligned(text: str, code: str) -> list[tuple[int, int]]:
    """Return, for each line of LibCST's own code, the line of ``text`` and the offset it begins at.

    LibCST loses a form feed in front of a statement, and at the end of a block some empty lines and
    comments that are not indented as the block: its lines and columns count without them.

    Raises:
        SiteError: the two differ in any other way; no position could be trusted.
    """
    starts = [0, *(match.end() for match in NEWLINE.finditer(text))]
    if code == text:
        return list(enumerate(starts, start=1))
    lines = NEWLINE.split(text)
    aligned = []
    number = 0
    for kept in NEWLINE.split(code):
        while number < len(lines) and not _is_kept(lines[number], kept):
            number += 1
        if number == len(lines):
            raise SiteError(_("LibCST can't reproduce this source"))
        aligned.append((number + 1, starts[number] + len(lines[number]) - len(kept)))
        number += 1
    return aligned


def _is_kept(line: str, kept: str) -> bool:
    """Return whether LibCST's ``kept`` is ``line``, or it without white space at its front.

    Raises:
        SiteError: it is not, and ``line`` holds code.
    """
    if line.endswith(kept) and not line[: len(line) - len(kept)].strip():
        return True
    if line.strip() and not line.lstrip().startswith("#"):
        raise SiteError(_("LibCST can't reproduce this source"))
    return False


def parse_source(text: str, path: str) -> Source:
    """Return a parsed source.

    Raises:
        SiteError: the text is no Python, or too deeply nested to look at.
    """
    check_parseable(text, path)
    try:
        return Source(text, path)
    except cst.ParserSyntaxError as error:
        message = _("{path} can't be read: line {line}: {reason}").format(
            path=path, line=error.raw_line, reason=error.message
        )
        raise SiteError(message) from error
