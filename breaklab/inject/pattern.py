"""Patterns: Python in which ``$NAME`` stands for one expression and ``$$$NAME`` for any number.

A pattern is ordinary Python once its metavariables are spelled as identifiers, so LibCST parses it
and formatting, comments, quotes and redundant parentheses stop to matter.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.guard import check_parseable

METAVARIABLE = re.compile(r"(\$\$\$|\$)([A-Z][A-Z0-9_]*)")
_MAX_SHOWN = 8  # lines of a pattern in a message
_ONE, _MANY = "breaklab_one_", "breaklab_many_"

Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern: one expression, or one or more consecutive statements."""

    text: str
    expression: cst.BaseExpression | None
    statements: tuple[Statement, ...]


def compile_pattern(text: str, *, as_statements: bool) -> Pattern:
    """Parse a pattern.

    Args:
        text: the pattern, as the spec has it.
        as_statements: take an expression as a whole statement, too.

    Raises:
        SiteError: it is no Python.
    """
    code = spelled(textwrap.dedent(text).strip("\r\n"))
    what = _("the pattern `{pattern}`").format(pattern=_shortened(text))
    check_parseable(code, what)
    if not as_statements:
        expression = parse_expression(code)
        if expression is not None and not many_name(expression):
            return Pattern(text, expression, ())
    statements = parse_statements(code)
    if all(many_name(statement) for statement in statements):
        raise SiteError(_("{what} would match anything").format(what=what))
    return Pattern(text, None, tuple(statements))


def parse_statements(code: str) -> list[Statement]:
    """Return the statements of code or of a pattern.

    Raises:
        SiteError: it is no Python, or nested too deeply.
    """
    code = spelled(code)
    check_parseable(code, _("the new code"))
    return flatten(cst.parse_module(code + "\n").body)


def parse_expression(code: str) -> cst.BaseExpression | None:
    """Return ``code`` as an expression, None where it is none."""
    code = spelled(code).strip()
    try:
        check_parseable(code, _("the new code"))
        return cst.parse_expression(code)
    except (SiteError, cst.ParserSyntaxError):
        return None


def flatten(body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> list[Statement]:
    """Return the statements of a block, those that share a line one by one."""
    statements: list[Statement] = []
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            statements.extend(statement.body)
        elif isinstance(statement, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            statements.append(statement)
    return statements


def one_name(node: cst.CSTNode) -> str:
    """Return the name of the metavariable ``$NAME`` that ``node`` is; else empty."""
    return _metavariable(node, _ONE)


def many_name(node: object) -> str:
    """Return the name of the metavariable ``$$$NAME`` that an item of a list is; else empty."""
    if isinstance(node, cst.Expr | cst.Element | cst.Index):
        return many_name(node.value)
    if isinstance(node, cst.SubscriptElement):
        return many_name(node.slice)
    if isinstance(node, cst.Arg) and node.keyword is None and not node.star:
        return many_name(node.value)
    if isinstance(node, cst.Param) and node.default is None and not node.star:
        return many_name(node.name)
    return _metavariable(node, _MANY) if isinstance(node, cst.CSTNode) else ""


def _shortened(text: str) -> str:
    lines = text.strip().split("\n")
    return text.strip() if len(lines) <= _MAX_SHOWN else "\n".join([*lines[:_MAX_SHOWN], "..."])


def readable(code: str) -> str:
    """Return code of a pattern with its metavariables as the author wrote them."""
    return code.replace(_MANY, "$$$").replace(_ONE, "$")


def spelled(text: str) -> str:
    """Return a pattern with its metavariables as identifiers: the same lines, but Python."""
    return METAVARIABLE.sub(lambda m: (_MANY if m[1] == "$$$" else _ONE) + m[2], text)


def _metavariable(node: object, prefix: str) -> str:
    if isinstance(node, cst.Name) and node.value.startswith(prefix):
        return node.value.removeprefix(prefix)
    return ""
