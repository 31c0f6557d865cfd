"""Whether an expression that was put into a source is read there as what it was meant to be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

Place = tuple[int, int]  # line from 1, column in bytes from 0, as in Python's own tree
_CONTEXT = re.compile(r", ctx=\w+\(\)")


def stands_alone(text: str, start: int, end: int) -> bool | None:
    """Return whether the text at a span is one expression of the source, whole and by itself.

    ``a + b`` put for ``x`` in ``x * c`` is not: only ``b`` belongs to it then.

    Args:
        text: the source with the expression in it.
        start: the offset of the expression's first character.
        end: the offset behind its last.

    Returns:
        None where Python's own tree can't tell: inside an f-string, for what is no expression by
        itself or no Python of this version, or where it would count lines differently.
    """
    if "\r" in text or "\f" in text:
        return None
    try:
        wanted = _meaning(ast.parse(f"({text[start:end]}\n)", mode="eval").body)
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    first, last = _place(text, start), _place(text, end)
    for node in _around(tree, first, last):
        if isinstance(node, ast.JoinedStr):
            return None
        if isinstance(node, ast.expr):
            inside = first <= (node.lineno, node.col_offset) and _end(node) <= last
            if inside and _meaning(node) == wanted:
                return True
    return False


def _around(tree: ast.AST, first: Place, last: Place) -> Iterator[ast.AST]:
    """Yield the nodes that a span has a part of."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr | ast.stmt):
                todo.append(child)  # it may not know its place, what is in it does
                continue
            lines = [each.lineno for each in getattr(child, "decorator_list", [])]
            begin = (min([child.lineno, *lines]), child.col_offset)
            if begin <= last and first <= _end(child):
                todo.append(child)


def _end(node: ast.expr | ast.stmt) -> Place:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _meaning(node: ast.AST) -> str:
    """Return what a node says, whether it is read or written to."""
    return _CONTEXT.sub("", ast.dump(node))


def _place(text: str, offset: int) -> Place:
    begin = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, len(text[begin:offset].encode("utf-8", "surrogatepass"))
