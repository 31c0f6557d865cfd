"""Which functions a change of source lies in; decides which tests can notice it."""

from __future__ import annotations

import ast
from difflib import SequenceMatcher


def changed_functions(before: bytes, after: bytes) -> frozenset[str] | None:
    """Return the qualnames of the outermost functions whose bodies differ.

    Returns:
        ``Class.method`` or ``function`` for each; None when something outside of every function
        body changed (a default, a decorator, a class attribute, module code), which runs at import
        and can affect anything.
    """
    names: set[str] = set()
    old, new = before.split(b"\n"), after.split(b"\n")
    bodies_old, bodies_new = _bodies(before), _bodies(after)
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for lines, bodies in ((range(i1, i2), bodies_old), (range(j1, j2), bodies_new)):
            for line in lines:
                name = bodies.get(line + 1)
                if name is None:
                    return None
                names.add(name)
    return frozenset(names)


def affected(touched: tuple[str, ...], file: str, functions: frozenset[str]) -> bool:
    """Return whether a test that called ``touched`` called one of ``functions`` of ``file``.

    Args:
        touched: ``file:qualname`` for each function the test called.
        file: the changed file, relative to the source.
        functions: as :func:`changed_functions` gives them.
    """
    for name in touched:
        where, _, qualname = name.partition(":")
        if where == file and qualname.split(".<locals>.")[0] in functions:
            return True
    return False


def _bodies(source: bytes) -> dict[int, str]:
    """Return, for each line in the body of a function, the outermost function's qualname."""
    lines: dict[int, str] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                for line in range(child.body[0].lineno, (child.end_lineno or 0) + 1):
                    lines[line] = prefix + child.name
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(ast.parse(source), "")
    return lines
