"""What collectives are called in a lab: labs wrap them under names of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import libcst as cst

from breaklab.inject.walk import walk

COLLECTIVES = (
    *("all_reduce*", "allreduce*", "all_gather*", "allgather*", "all_to_all*", "reduce_scatter*"),
    *("broadcast", "broadcast_*", "start_sum", "start_broadcast", "start_all_*", "gather_object"),
    *("scatter_object*", "barrier", "monitored_barrier", "exchange", "send", "recv", "isend"),
    *("irecv", "batch_isend_irecv", "wait", "dist.reduce", "dist.gather", "dist.scatter"),
)
_NO_COLLECTIVES = ("broadcast_to", "broadcast_tensors", "broadcast_shapes")
# Calls that do their work in passing, so that nothing complains where one is forgotten.
RITUALS = (
    *("set_epoch", "*seed", "seed_*", "zero_grad", "zero_", "clear", "clip_*", "*_clip_*"),
    *("synchronize", "sync_*", "step", "update", "eval", "train", "finish", "set_state"),
)
# What everybody calls a function, or a method of torch's: no name of a wrapper.
_COMMON = {
    *("main", "run", "fit", "train", "step", "update", "forward", "backward", "save", "load"),
}
_MAX_WRAPPER = 14  # statements; a longer function does more than to wrap a collective


@dataclass(frozen=True)
class Words:
    """The names that operators look for.

    Attributes:
        collectives: patterns of function names, as for a shell; with a dot: of the whole callee.
        rituals: likewise.
        functions: all functions that the lab defines.
        rank_attribute: whether the lab's objects know their rank as ``.rank``.
    """

    collectives: tuple[str, ...] = COLLECTIVES
    rituals: tuple[str, ...] = RITUALS
    functions: frozenset[str] = field(default_factory=frozenset)
    rank_attribute: bool = False

    def is_collective(self, call: cst.CSTNode) -> bool:
        """Return whether a node calls a collective."""
        name = callee(call)
        last = name.rpartition(".")[2]
        return last not in _NO_COLLECTIVES and _matches(name, self.collectives)

    def is_ritual(self, call: cst.CSTNode) -> bool:
        """Return whether a node is a call that is easily forgotten."""
        return _matches(callee(call), self.rituals)


def words_of(modules: Iterable[cst.Module], collectives: Iterable[str] = ()) -> Words:
    """Return the names that a lab uses: those given, the usual ones, and what wraps them.

    Args:
        modules: the lab's source.
        collectives: more patterns.
    """
    usual = Words(collectives=(*COLLECTIVES, *collectives))
    functions: set[str] = set()
    wrappers: set[str] = set()
    rank_attribute = False
    for module in modules:
        for node in walk(module):
            if isinstance(node, cst.FunctionDef):
                functions.add(node.name.value)
                if _wraps(node, usual):
                    wrappers.add(node.name.value)
            elif isinstance(node, cst.AssignTarget | cst.AnnAssign):
                target = node.target
                rank_attribute |= isinstance(target, cst.Attribute) and target.attr.value == "rank"
    names = (*usual.collectives, *sorted(wrappers))
    return Words(names, RITUALS, frozenset(functions), rank_attribute)


def _wraps(function: cst.FunctionDef, words: Words) -> bool:
    if function.name.value.startswith("__") or function.name.value in _COMMON:
        return False
    statements = [n for n in walk(function.body) if isinstance(n, cst.BaseSmallStatement)]
    return len(statements) <= _MAX_WRAPPER and any(map(words.is_collective, walk(function.body)))


def callee(node: cst.CSTNode) -> str:
    """Return the dotted name of what a node calls; what is no name is left out; else empty."""
    return dotted(node.func) if isinstance(node, cst.Call) else ""


def dotted(node: cst.CSTNode) -> str:
    """Return a name, or the names of an attribute joined by dots; empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        front = dotted(node.value)
        return f"{front}.{node.attr.value}" if front else node.attr.value
    return ""


def _matches(name: str, patterns: Iterable[str]) -> bool:
    last = name.rpartition(".")[2]
    return bool(name) and any(fnmatchcase(name if "." in p else last, p) for p in patterns)
