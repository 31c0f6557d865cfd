"""A source as operators see it: every node with where it stands, and edits of its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import libcst as cst

from breaklab.inject.layout import indent_at, line_start
from breaklab.inject.operators.words import Words, dotted
from breaklab.inject.source import NEWLINE, Source
from breaklab.inject.walk import walk

Node = TypeVar("Node", bound=cst.CSTNode)
Function = cst.FunctionDef | None


@dataclass(frozen=True)
class Edit:
    """Replace the text from ``start`` to ``end``; ``what`` says it in words."""

    start: int
    end: int
    text: str
    what: str
    moved: bool = False  # code goes to another place, as a whole


@dataclass(frozen=True)
class Spot:
    """Where a node stands."""

    node: cst.CSTNode
    inside: str = ""  # dotted name of the function or class around it
    function: Function = None
    klass: cst.ClassDef | None = None
    block: Sequence[cst.CSTNode] = ()  # the lines of the innermost block
    index: int = 0  # of the line that the node is in
    parents: tuple[cst.CSTNode, ...] = ()  # from the module to its own parent


class View:
    """One source file, its nodes in their order, and the names that operators look for."""

    def __init__(self, source: Source, words: Words) -> None:
        self.source = source
        self.words = words
        self.spots = tuple(_spots(Spot(source.module)))

    def inside(self, offset: int) -> str:
        """Return the dotted name of the innermost function or class around an offset."""
        found = ""
        for spot in self.spots:
            if isinstance(spot.node, cst.FunctionDef | cst.ClassDef):
                start, end = self.source.span(spot.node)
                if start <= offset < end:
                    found = _name(spot.inside, spot.node)
        return found

    def each(self, kind: type[Node]) -> Iterator[tuple[Node, Spot]]:
        """Yield the nodes of a kind that stand in a function, with where."""
        for spot in self.spots:
            if isinstance(spot.node, kind) and spot.function is not None:
                yield spot.node, spot

    def calls(self) -> Iterator[tuple[cst.Call, Spot, bool]]:
        """Yield every call, and whether it is a statement of its own."""
        for call, spot in self.each(cst.Call):
            yield call, spot, isinstance(spot.parents[-1], cst.Expr)

    def code(self, node: cst.CSTNode) -> str:
        """Return a node's text."""
        return self.source.code([node])

    def replaced(self, node: cst.CSTNode, text: str, what: str) -> Edit:
        """Return the edit that puts ``text`` in a node's place."""
        start, end = self.source.span(node)
        return Edit(start, end, text, what)

    def line(self, spot: Spot, index: int | None = None) -> tuple[int, int] | None:
        """Return where a statement's whole lines begin and end, newline included.

        None for one that shares its line with another.

        Args:
            spot: where to look.
            index: which statement of the block; default: the one that the node is in.
        """
        node = spot.block[spot.index if index is None else index]
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) != 1:
            return None
        inner = node.body[0] if isinstance(node, cst.SimpleStatementLine) else node
        start, end = self.source.span(inner)
        text = self.source.text
        newline = NEWLINE.search(text, max(start, end - 1) if text[end - 1] in "\r\n" else end)
        return line_start(text, start), newline.end() if newline else len(text)

    def bare(self, spot: Spot) -> str:
        """Return a statement's first line, shortened for a message."""
        node = spot.block[spot.index]
        return self.source.shown(
            node.body[0] if isinstance(node, cst.SimpleStatementLine) else node
        )

    def indent(self, spot: Spot) -> str:
        """Return what the lines of a statement begin with."""
        return indent_at(self.source.text, self.source.span(spot.block[spot.index])[0])

    def in_scope(self, spot: Spot, word: str, receiver: str = "") -> str:
        """Return the code of this rank's ``rank``, or of the ``world_size``, as far as known there.

        Args:
            spot: where it is wanted.
            word: ``rank`` or ``world_size``.
            receiver: an object that may know it as an attribute.
        """
        assert spot.function is not None
        if word in _parameters(spot.function):
            return word
        for node in walk(spot.function.body):
            if is_called(node, word):
                return self.code(node)
        if not self.words.rank_attribute:
            return f"dist.get_{word}()" if _imports_dist(self.source.module) else ""
        known = _parameters(spot.function)
        comm = next((name for name in known if name.endswith("comm")), "")
        if not comm and spot.klass is not None and "self" in known:
            names = (dotted(node) for node in walk(spot.klass))
            comm = next((n for n in names if n.startswith("self.") and n.endswith(".comm")), "")
        owner = comm or (receiver if receiver.endswith("comm") else "")
        return f"{owner}.{word}" if owner else ""


def is_called(node: cst.CSTNode, word: str) -> bool:
    """Return whether a node is the rank, or the world size: a name, attribute or getter."""
    if isinstance(node, cst.Call):
        return dotted(node.func).rpartition(".")[2] == f"get_{word}"
    return dotted(node).rpartition(".")[2] == word


def is_read(node: cst.CSTNode, spot: Spot) -> bool:
    """Return whether a name or an attribute is read there, as a value of its own."""
    parent = spot.parents[-1]
    if isinstance(parent, cst.Attribute | cst.AssignTarget | cst.Param | cst.NameItem):
        return isinstance(parent, cst.Attribute) and parent.value is node
    if isinstance(parent, cst.Call) and parent.func is node:
        return False
    if isinstance(parent, cst.Arg) and parent.keyword is node:
        return False
    return not (isinstance(parent, cst.Element) and isinstance(spot.parents[-3], cst.AssignTarget))


def applied(text: str, edit: Edit) -> str:
    """Return a text with an edit made."""
    return text[: edit.start] + edit.text + text[edit.end :]


def _parameters(function: cst.FunctionDef) -> list[str]:
    params = function.params
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return [param.name.value for param in every]


def _imports_dist(module: cst.Module) -> bool:
    return any(
        isinstance(node, cst.ImportAlias)
        and node.asname is not None
        and dotted(node.asname.name) == "dist"
        for node in walk(module)
    )


def _spots(spot: Spot) -> Iterator[Spot]:
    yield spot
    node = spot.node
    below = replace(spot, parents=(*spot.parents, node))
    if isinstance(node, cst.ClassDef):
        below = replace(below, klass=node, inside=_name(spot.inside, node))
    if isinstance(node, cst.FunctionDef):
        # Decorators, defaults and annotations belong to what is around; they run at import.
        for child in node.children:
            if child is not node.body:
                yield from _spots(replace(below, node=child))
        below = replace(below, function=node, inside=_name(spot.inside, node))
        yield from _spots(replace(below, node=node.body))
        return
    if isinstance(node, cst.Module | cst.IndentedBlock):
        for index, line in enumerate(node.body):
            yield from _spots(replace(below, node=line, block=node.body, index=index))
        return
    for child in node.children:
        yield from _spots(replace(below, node=child))


def _name(inside: str, node: cst.FunctionDef | cst.ClassDef) -> str:
    return f"{inside}.{node.name.value}" if inside else node.name.value
