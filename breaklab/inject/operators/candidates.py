"""Candidates for breaks: every change that an operator makes of a source and that keeps the rules.

A candidate is one hunk that touches at most two lines (R1 and R2), is another program than the
source, and compiles. Nothing outside its site changes by a byte.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from breaklab.inject.diff import fix_diff
from breaklab.inject.edit import read_source
from breaklab.inject.operators import bounds, collectives, divisors, ranks, rituals, states
from breaklab.inject.operators.view import Edit, View, applied
from breaklab.inject.operators.words import Words, words_of
from breaklab.inject.size import is_one_small_bug

Operator = Callable[[View], Iterator[Edit]]
OPERATORS: Mapping[str, Operator] = {
    "drop-collective": collectives.drop_collective,
    "repeat-collective": collectives.repeat_collective,
    "move-collective": collectives.move_collective,
    "guard-collective": collectives.guard_collective,
    "local-value": collectives.local_value,
    "stale-value": collectives.stale_value,
    "other-reduction": collectives.other_reduction,
    "wrong-source": collectives.wrong_source,
    "wrong-group": collectives.wrong_group,
    "drop-call": rituals.drop_ritual,
    "move-call": rituals.move_ritual,
    "drop-copy": rituals.drop_copy,
    "drop-divisor": divisors.drop_divisor,
    "add-divisor": divisors.add_divisor,
    "other-divisor": divisors.other_divisor,
    "mean-and-sum": divisors.mean_and_sum,
    "off-by-one": bounds.off_by_one,
    "no-stride": bounds.no_stride,
    "drop-one": bounds.drop_one,
    "ignore-rank": ranks.ignore_rank,
    "ignore-world-size": ranks.ignore_world_size,
    "wrong-rank": ranks.wrong_rank,
    "seed-with-rank": ranks.seed_with_rank,
    "skip-saving": states.skip_saving,
    "skip-loading": states.skip_loading,
    "skip-one-of-many": states.skip_one_of_many,
}


@dataclass(frozen=True)
class Candidate:
    """A change that may make a break.

    Attributes:
        key: names it as long as the lines around it stay as they are.
        file: relative to the lab's root.
        line: the first one that changes, in the source as it is.
        function: dotted; empty for code of the module.
        operator: which one found it.
        what: what it does, in words.
        pristine: the source.
        broken: the source with it.
    """

    key: str
    file: str
    line: int
    function: str
    operator: str
    what: str
    pristine: bytes
    broken: bytes

    def diff(self, context: int = 1) -> str:
        """Return the unified diff from the source to the source with the change."""
        return fix_diff(self.pristine, self.broken, self.file, context)


def lab_words(sources: Mapping[str, bytes], collectives: Collection[str] = ()) -> Words:
    """Return the names that a lab's sources use, to find candidates by.

    Args:
        sources: by file, for messages.
        collectives: patterns of names beside the usual ones and what wraps those.

    Raises:
        SiteError: a source is no Python.
    """
    modules = [read_source(source, file).module for file, source in sources.items()]
    return words_of(modules, collectives)


def candidates_in(
    source: bytes, file: str, words: Words, operators: Collection[str] = ()
) -> Iterator[Candidate]:
    """Yield the candidates in one source, in its order; each program once.

    Args:
        source: the pristine bytes.
        file: relative to the lab's root.
        words: the lab's names.
        operators: which to use; default: all.

    Raises:
        SiteError: the source is no Python.
    """
    parsed = read_source(source, file)
    view = View(parsed, words)
    encoding = parsed.module.encoding
    front = source[: len(source) - len(parsed.text.encode(encoding))]  # a byte-order mark
    edits = [
        (edit, name)
        for name, operator in OPERATORS.items()
        if not operators or name in operators
        for edit in operator(view)
    ]
    programs = {ast.dump(ast.parse(source))}
    for edit, name in sorted(edits, key=lambda pair: pair[0].start):
        broken = front + applied(parsed.text, edit).encode(encoding)
        program = _program(broken)
        if program is None or program in programs:
            continue
        if not is_one_small_bug(source, broken, moved=edit.moved):
            continue
        programs.add(program)
        line = parsed.line_at(edit.start)
        key = _key(source, broken, file)
        yield Candidate(key, file, line, view.inside(edit.start), name, edit.what, source, broken)


def _program(source: bytes) -> str | None:
    """Return what a source says, whatever its layout; None where it is no Python."""
    try:
        tree = ast.parse(source)
        compile(tree, "<candidate>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return ast.dump(tree)


def _key(pristine: bytes, broken: bytes, file: str) -> str:
    """Return a name for a change that holds while other parts of the file change."""
    lines = fix_diff(pristine, broken, file).split("\n")
    text = "\n".join(line for line in lines if not line.startswith("@@"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
