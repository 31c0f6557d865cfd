"""How large a change is, as the rules R1 and R2 count."""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter

from breaklab.inject.diff import changed_lines

MAX_LINES = 2  # that a fix may touch
_CONTEXT = 3  # lines that changes of one hunk share, as in a unified diff
_CONDITIONALS = (ast.If, ast.IfExp, ast.While, ast.Match)
_CONDITION = re.compile(rb"\b(?:if|elif|while|match)\b")


def num_hunks(pristine: bytes, broken: bytes) -> int:
    """Count hunks as a unified diff has them: changes that share context are one."""
    before, after = (part.split(b"\n") for part in _around_change(pristine, broken))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if not any(tag != "equal" for tag, *_places in matcher.get_opcodes()):
        return 0
    return len(list(matcher.get_grouped_opcodes(_CONTEXT)))


def num_new_conditionals(pristine: bytes, broken: bytes) -> int:
    """Return how many conditionals ``broken`` has more than ``pristine``."""
    before, after = _around_change(pristine, broken)
    if len(_CONDITION.findall(after)) <= len(_CONDITION.findall(before)):
        return 0  # none can be new, and parsing takes long
    return _conditionals(broken) - _conditionals(pristine)


def num_touched_lines(pristine: bytes, broken: bytes) -> int:
    """Count the lines that the fix touches; a moved or changed line counts once."""
    removed, added = changed_lines(*_around_change(pristine, broken))
    before = Counter(line.strip() for line in removed if line.strip())
    after = Counter(line.strip() for line in added if line.strip())
    moved = sum((before & after).values())
    return moved + max(sum((before - after).values()), sum((after - before).values()))


def is_one_small_bug(pristine: bytes, broken: bytes, *, moved: bool = False) -> bool:
    """Return whether a change keeps R1 and R2; one that moves code may have two hunks."""
    return (
        num_hunks(pristine, broken) <= (2 if moved else 1)
        and num_new_conditionals(pristine, broken) <= 1
        and num_touched_lines(pristine, broken) <= MAX_LINES
    )


def _around_change(pristine: bytes, broken: bytes) -> tuple[bytes, bytes]:
    """Return both sources without the lines far from any change: comparing them takes long."""
    old, new = pristine.split(b"\n"), broken.split(b"\n")
    shorter = min(len(old), len(new))
    front = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - front
    back = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    first, last = max(front - _CONTEXT, 0), max(back - _CONTEXT, 0)
    return b"\n".join(old[first : len(old) - last]), b"\n".join(new[first : len(new) - last])


def _conditionals(source: bytes) -> int:
    return sum(isinstance(node, _CONDITIONALS) for node in ast.walk(ast.parse(source)))
