"""Structural equality of a pattern and code, with metavariables.

Two nodes match when they are the same syntax: whitespace, comments, redundant parentheses, trailing
commas, quotes and the spelling of numbers don't count, and keyword arguments may come in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.pattern import flatten, many_name, one_name
from breaklab.inject.walk import semantic_fields

Captures = dict[str, tuple[cst.CSTNode, ...]]
_MAX_COMPARISONS = 300_000  # some tenths of a second; real patterns take some thousands


class Budget:
    """How many comparisons one search may take: several ``$$$NAME`` in a row can try too many."""

    def __init__(self, pattern: str = "", limit: int = _MAX_COMPARISONS) -> None:
        self._pattern = pattern
        self._left = limit

    def spend(self) -> None:
        """Take one comparison.

        Raises:
            SiteError: none is left.
        """
        self._left -= 1
        if self._left < 0:
            raise SiteError(
                _("`{pattern}` can match in too many ways").format(pattern=self._pattern.strip()),
                hint=_("use fewer `$$$` in it"),
            )


class Matcher:
    """Matches one pattern against one candidate; keeps captures, and how far it came.

    Attributes:
        captures: what each metavariable stands for.
        progress: how many nodes matched before the first that did not.
        mismatch: the pattern's node and the code's where it ended, None where it matched.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self.captures: Captures = {}
        self.progress = 0
        self.mismatch: tuple[Any, Any] | None = None

    def node(self, pattern: Any, code: Any) -> bool:
        """Return whether one node, token or None matches another."""
        self._budget.spend()
        if isinstance(pattern, cst.CSTNode) and isinstance(code, cst.CSTNode):
            if name := one_name(pattern):
                ok = isinstance(code, cst.BaseExpression) and self._capture(name, (code,))
            elif self._is_block(pattern) and self._is_block(code):
                return self.sequence(flatten(pattern.body), flatten(code.body))  # type: ignore[attr-defined]
            else:
                ok = self._same(pattern, code)
        else:
            ok = pattern == code
            if not ok:
                self._missed(pattern, code)
        if ok:
            self.progress += 1
        return ok

    def sequence(self, pattern: Sequence[Any], code: Sequence[Any]) -> bool:
        """Return whether two lists match in full, ``$$$NAME`` taking as few items as it can."""
        return self.prefix(pattern, code, whole=True) is not None

    def prefix(self, pattern: Sequence[Any], code: Sequence[Any], *, whole: bool) -> int | None:
        """Return how many items of ``code`` the pattern takes from its front; None for no match."""
        for index, item in enumerate(pattern):
            if name := many_name(item):
                taken = self._many(name, pattern[index + 1 :], code[index:], whole)
                return None if taken is None else taken + index
            if index >= len(code):
                self._missed(item, None)
                return None
            if not self.node(item, code[index]):
                return None
        if whole and len(code) > len(pattern):
            self._missed(None, code[len(pattern)])
            return None
        return len(pattern)

    def _many(self, name: str, rest: Sequence[Any], code: Sequence[Any], whole: bool) -> int | None:
        for count in range(len(code) + 1):
            self._budget.spend()
            saved = dict(self.captures)
            if self._capture(name, tuple(code[:count])):
                taken = self.prefix(rest, code[count:], whole=whole)
                if taken is not None:
                    return taken + count
            self.captures = saved
        return None

    def _same(self, pattern: cst.CSTNode, code: cst.CSTNode) -> bool:
        literal = _literal(pattern)
        if literal is not None:
            ok = literal == _literal(code)
        elif isinstance(pattern, cst.Parameters) and isinstance(code, cst.Parameters):
            return self.sequence(_parameters(pattern), _parameters(code))
        elif isinstance(pattern, cst.Call) and isinstance(code, cst.Call):
            return self.node(pattern.func, code.func) and self._arguments(pattern.args, code.args)
        elif type(pattern) is not type(code):
            ok = False
        else:
            return all(
                self._field(getattr(pattern, name), getattr(code, name))
                for name in semantic_fields(type(pattern))
            )
        if not ok:
            self._missed(pattern, code)
        return ok

    def _field(self, pattern: Any, code: Any) -> bool:
        if isinstance(pattern, list | tuple) and isinstance(code, list | tuple):
            return self.sequence(pattern, code)
        return self.node(pattern, code)

    def _arguments(self, pattern: Sequence[cst.Arg], code: Sequence[cst.Arg]) -> bool:
        """Match arguments: positional ones in order, keyword ones in any."""
        takes_rest = any(many_name(arg) for arg in pattern)
        named = {arg.keyword.value: arg for arg in code if arg.keyword is not None}
        left = list(code)
        for arg in pattern:
            if arg.keyword is None or one_name(arg.keyword):
                continue
            found = named.get(arg.keyword.value)
            if found is None or not self.node(arg.value, found.value):
                self._missed(arg, found)
                return False
            left.remove(found)
        positional = [arg for arg in pattern if arg.keyword is None or one_name(arg.keyword)]
        if not takes_rest and len(left) > len(positional):
            self._missed(None, left[len(positional)])
            return False
        return self.sequence(positional, left)

    def _capture(self, name: str, nodes: tuple[cst.CSTNode, ...]) -> bool:
        if name not in self.captures:
            self.captures[name] = nodes
            return True
        known = self.captures[name]
        same = len(known) == len(nodes) and all(map(equal, known, nodes))
        if not same:
            self._missed(known[0] if known else None, nodes[0] if nodes else None)
        return same

    def _missed(self, pattern: Any, code: Any) -> None:
        if self.mismatch is None:
            self.mismatch = (pattern, code)

    @staticmethod
    def _is_block(node: cst.CSTNode) -> bool:
        return isinstance(node, cst.IndentedBlock | cst.SimpleStatementSuite)


def equal(first: cst.CSTNode, second: cst.CSTNode) -> bool:
    """Return whether two nodes are the same syntax."""
    return Matcher().node(first, second)


def _parameters(node: cst.Parameters) -> list[cst.CSTNode]:
    """Return all parameters in order, with ``/`` and ``*`` where they stand."""
    star = [node.star_arg] if isinstance(node.star_arg, cst.CSTNode) else []
    slash = [node.posonly_ind] if isinstance(node.posonly_ind, cst.CSTNode) else []
    last = [node.star_kwarg] if node.star_kwarg is not None else []
    return [*node.posonly_params, *slash, *node.params, *star, *node.kwonly_params, *last]


def _literal(node: cst.CSTNode) -> tuple[str, Any] | None:
    """Return a literal's value with its type, None for anything else."""
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        value = node.evaluated_value
        return (type(value).__name__, value) if value is not None else None
    if isinstance(node, cst.Integer | cst.Float | cst.Imaginary):
        return type(node).__name__, node.evaluated_value
    return None
