"""Find the one place in a source that a pattern matches, or say what came nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.match import Budget, Captures, Matcher
from breaklab.inject.pattern import Pattern, Statement, flatten, readable
from breaklab.inject.source import Source
from breaklab.inject.walk import walk

_SHOWN = 60  # characters of code in a message
_MAX_LINES = 10  # line numbers in a message


@dataclass(frozen=True)
class Site:
    """What a pattern matched: one expression, or consecutive statements of one block."""

    nodes: tuple[cst.CSTNode, ...]
    captures: Captures
    block: tuple[Statement, ...] = ()  # all statements of the block that the site is in


def find_site(source: Source, pattern: Pattern, inside: str) -> Site:
    """Return the only site of ``pattern``.

    Raises:
        SiteError: there is no such function or class, no site, or more than one.
    """
    sites, nearest = _search(source, pattern, inside)
    if len(sites) == 1:
        return sites[0]
    where = _("`{inside}` of {path}").format(inside=inside, path=source.path)
    if not inside:
        where = source.path
    raise (
        _several(source, pattern, sites, where) if sites else _none(source, pattern, nearest, where)
    )


def all_sites(source: Source, pattern: Pattern, inside: str) -> list[Site]:
    """Return every site of ``pattern``.

    Raises:
        SiteError: there is no such function or class.
    """
    return _search(source, pattern, inside)[0]


def _search(
    source: Source, pattern: Pattern, inside: str
) -> tuple[list[Site], tuple[Matcher, cst.CSTNode] | None]:
    """Return all sites, and the candidate that came nearest to being one."""
    sites: list[Site] = []
    nearest: tuple[Matcher, cst.CSTNode] | None = None
    budget = Budget(pattern.text)
    for nodes, block in _candidates(pattern, _scopes(source, inside)):
        matcher = Matcher(budget)
        taken = _match(pattern, nodes, matcher)
        if taken is not None:
            sites.append(Site(tuple(nodes[:taken]), matcher.captures, block))
        elif nearest is None or matcher.progress > nearest[0].progress:
            nearest = matcher, nodes[0]
    return sites, nearest


def _match(pattern: Pattern, nodes: Sequence[cst.CSTNode], matcher: Matcher) -> int | None:
    if pattern.expression is not None:
        return 1 if matcher.node(pattern.expression, nodes[0]) else None
    return matcher.prefix(pattern.statements, nodes, whole=False)


def _candidates(
    pattern: Pattern, scopes: Sequence[cst.CSTNode]
) -> Iterator[tuple[Sequence[cst.CSTNode], tuple[Statement, ...]]]:
    """Yield where the pattern might begin: each expression, or each tail of each block."""
    for scope in scopes:
        if pattern.expression is not None:
            for node in walk(scope):
                if isinstance(node, cst.BaseExpression):
                    yield (node,), ()
        else:
            for node in walk(scope):
                if isinstance(node, cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite):
                    block = tuple(flatten(node.body))
                    for index in range(len(block)):
                        yield block[index:], block


def _scopes(source: Source, inside: str) -> list[cst.CSTNode]:
    """Return the functions or classes of a dotted name; the module for an empty one."""
    if not inside:
        return [source.module]
    named = source.definitions
    if inside in named:
        return named[inside]
    close = difflib.get_close_matches(inside, list(named), n=1, cutoff=0.4)
    hint = _("did you mean `{name}`?").format(name=close[0]) if close else ""
    raise SiteError(
        _("{path} has no function or class `{inside}`").format(path=source.path, inside=inside),
        hint=hint or _("it has: {names}").format(names=", ".join(named)),
    )


def _several(source: Source, pattern: Pattern, sites: list[Site], where: str) -> SiteError:
    numbers = [str(line) for line in sorted(source.line(site.nodes[0]) for site in sites)]
    lines = ", ".join(numbers[:_MAX_LINES]) + (", ..." if len(numbers) > _MAX_LINES else "")
    return SiteError(
        _("`{pattern}` has {count} sites in {where}, on lines {lines}").format(
            pattern=pattern.text.strip(), count=len(sites), where=where, lines=lines
        ),
        hint=_("make it unique: name the function in `inside`, or take more code into `find`"),
    )


def _none(
    source: Source, pattern: Pattern, nearest: tuple[Matcher, cst.CSTNode] | None, where: str
) -> SiteError:
    message = _("`{pattern}` has no site in {where}").format(
        pattern=pattern.text.strip(), where=where
    )
    if nearest is None or nearest[0].progress == 0:
        return SiteError(message, hint=_("nothing there resembles it"))
    matcher, node = nearest
    hint = _("the nearest is line {line}: `{code}`").format(
        line=source.line(node), code=source.shown(node)
    )
    if matcher.mismatch is not None:
        wanted, found = (_piece(part) for part in matcher.mismatch)
        hint += "; " + _("wanted {wanted}, found {found}").format(wanted=wanted, found=found)
    return SiteError(message, hint=hint)


def _piece(part: object) -> str:
    if isinstance(part, cst.CSTNode):
        code = readable(cst.Module([]).code_for_node(part)).strip() or type(part).__name__
        first = code.splitlines()[0]
        return f"`{first[:_SHOWN]}`"
    return _("nothing") if part is None or not isinstance(part, str) else f"`{part}`"
