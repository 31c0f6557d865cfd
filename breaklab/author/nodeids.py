"""Whether a pytest node id can exist, read from the test file's syntax; nothing is imported."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from breaklab.i18n import _


def missing_test(root: Path, nodeid: str) -> str:
    """Return why pytest can't know a node id, or ``""`` where it can.

    Args:
        root: the project's root, which node ids are relative to.
        nodeid: ``file::function`` or ``file::Class::method``; a parameter's ``[...]`` is not
            looked at, since only pytest knows the parameters.
    """
    file, *names = nodeid.partition("[")[0].split("::")
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()) or not path.is_file():
        return _("`{nodeid}`: there is no file {file}").format(nodeid=nodeid, file=file)
    if not names:
        return _("`{nodeid}` names no test: write FILE::TEST").format(nodeid=nodeid)
    try:
        known = _tests_in(path)
    except (SyntaxError, ValueError, RecursionError) as error:
        return _("`{nodeid}`: {file} can't be read as Python: {reason}").format(
            nodeid=nodeid, file=file, reason=error
        )
    if "::".join(names) in known:
        return ""
    return _("`{nodeid}`: {file} has no test of that name").format(nodeid=nodeid, file=file)


@lru_cache(maxsize=256)
def _tests_in(path: Path) -> frozenset[str]:
    """Return the names of all functions, and of all methods as ``Class::method``."""
    return frozenset(_functions(ast.parse(path.read_bytes()), ""))


def _functions(node: ast.AST, prefix: str) -> set[str]:
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(prefix + child.name)
        elif isinstance(child, ast.ClassDef):
            names |= _functions(child, f"{prefix}{child.name}::")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            names |= _functions(child, prefix)
    return names
