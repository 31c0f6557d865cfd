"""The new code of a break at its site: captures in place, indented as the lines around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.layout import indent_at, indented, reindented
from breaklab.inject.match import Captures, Matcher, equal
from breaklab.inject.pattern import METAVARIABLE, parse_expression, parse_statements
from breaklab.inject.source import NEWLINE, Source
from breaklab.inject.standing import stands_alone
from breaklab.inject.walk import walk


@dataclass(frozen=True)
class _Captured:
    """What a metavariable stands for, as text that can be put elsewhere."""

    text: str  # first line without indentation
    indent: str  # that the line it began in begins with
    in_strings: frozenset[int]  # lines of the text, from 1, that begin inside a string
    is_expression: bool

    def at(self, indent: str, *, parenthesized: bool) -> str:
        """Return the text for a line that begins with ``indent``."""
        text = reindented(self.text, self.indent, indent, self.in_strings)
        return f"({text})" if parenthesized and self.is_expression else text


def expression_at_site(code: str, source: Source, captures: Captures, start: int, end: int) -> str:
    """Return an expression of the new code as it must stand at its site.

    Args:
        code: the new code.
        source: where the site is.
        captures: what each metavariable stands for.
        start: the offset of the site's first character.
        end: the offset behind its last.

    Raises:
        SiteError: a metavariable that the pattern does not have, or an expression that can't stand
            there, even in parentheses.
    """
    new = _expression(code, source, captures)
    wanted = parse_expression(new) or parse_expression(f"({new})")
    for text in (new, f"({new})"):
        changed = source.text[:start] + text + source.text[end:]
        if wanted is not None and _stands_alone(changed, start, start + len(text), wanted):
            return text
    raise SiteError(_("the new code `{code}` can't stand at its site").format(code=new))


def _expression(code: str, source: Source, captures: Captures) -> str:
    """Return the new code with what its metavariables captured, each kept together."""
    captured = _captured(source, captures)
    wanted = parse_expression(code)
    for parenthesized in (False, True):
        text = _substitute(code, captured, parenthesized=parenthesized)
        found = parse_expression(text) or parse_expression(f"({text})")
        if _seeded(captures).node(wanted, found):
            return text
    raise _misfit(code)


def _stands_alone(text: str, start: int, end: int, wanted: cst.BaseExpression) -> bool:
    """Return whether the text at a span is one expression there, equal to ``wanted``."""
    known = stands_alone(text, start, end)
    if known is not None:
        return known
    try:
        source = Source(text, "")
    except cst.ParserSyntaxError:
        return False
    for node in walk(source.module):
        if isinstance(node, cst.BaseExpression) and equal(wanted, node):
            first, last = source.span(node)
            if start <= first and last <= end:
                return True
    return False


def statements_at_site(
    code: str, source: Source, captures: Captures, indent: str, newline: str
) -> str:
    """Return statements of the new code, every line but an empty one begun with ``indent``.

    Args:
        code: statements at level 0, indented by four spaces for each level.
        source: where the captures are from.
        captures: what each metavariable stands for.
        indent: what the site's lines begin with.
        newline: what ends the site's lines; the last line gets none.

    Raises:
        SiteError: the code is no Python, or as for :func:`expression_at_site`.
    """
    captured = _captured(source, captures)
    unit = source.module.default_indent
    wanted = parse_statements(code)
    flat = indented(code, "", unit, "\n")
    for parenthesized in (False, True):
        try:
            found = parse_statements(_substitute(flat, captured, parenthesized=parenthesized))
        except SiteError:
            continue
        if _seeded(captures).sequence(wanted, found):
            template = indented(code, indent, unit, newline)
            return _substitute(template, captured, parenthesized=parenthesized)
    raise _misfit(code)


def _captured(source: Source, captures: Captures) -> dict[str, _Captured]:
    in_strings = source.string_lines if any(captures.values()) else frozenset()
    found = {}
    for name, nodes in captures.items():
        if not nodes:
            found[name] = _Captured("", "", frozenset(), is_expression=False)
            continue
        start = source.span(nodes[0])[0]
        line = source.line_at(start)
        text = source.code(nodes)
        count = len(text.splitlines())
        inner = frozenset(n - line + 1 for n in in_strings if line < n < line + count + 1)
        is_expression = isinstance(nodes[0], cst.BaseExpression)
        found[name] = _Captured(text, indent_at(source.text, start), inner, is_expression)
    return found


def _substitute(template: str, captured: Mapping[str, _Captured], *, parenthesized: bool) -> str:
    """Return the template with every metavariable replaced."""
    parts: list[str] = []
    end = 0
    for match in METAVARIABLE.finditer(template):
        if match[2] not in captured:
            raise SiteError(
                _("`{name}` is in the new code but not in `find`").format(name=match[0])
            )
        value = captured[match[2]]
        before = template[end : match.start()]
        end = match.end()
        if not value.text:
            before, end = _without_comma(*_without_line(before, template, end))
        parts += [
            before,
            value.at(indent_at(template, match.start()), parenthesized=parenthesized),
        ]
    return "".join(parts) + template[end:]


def _without_line(before: str, template: str, end: int) -> tuple[str, str, int]:
    """Drop the line that an empty list of statements would leave."""
    newline = NEWLINE.match(template, end)
    if newline and re.search(r"(^|[\r\n])[ \t]*$", before):
        return before.rstrip(" \t"), template, newline.end()
    return before, template, end


def _without_comma(before: str, template: str, end: int) -> tuple[str, int]:
    """Drop the comma that parts an empty list of arguments from its neighbour."""
    shorter = re.sub(r",\s*$", "", before)
    if shorter != before:
        return shorter, end
    following = re.compile(r"\s*,\s*").match(template, end)
    return before, following.end() if following else end


def _seeded(captures: Captures) -> Matcher:
    """Return a matcher for which each metavariable stands for what it captured."""
    matcher = Matcher()
    matcher.captures = dict(captures)
    return matcher


def _misfit(code: str) -> SiteError:
    return SiteError(
        _("what the metavariables stand for can't be put into `{code}`").format(code=code.strip())
    )
