"""What code in a break may never use: imports, programs, files, sockets, and ways to hide them."""

from __future__ import annotations

import ast

_MODULES = {
    *("os", "sys", "subprocess", "socket", "shutil", "pathlib", "importlib", "ctypes", "pickle"),
    *("multiprocessing", "pty", "tempfile", "urllib", "http", "requests", "builtins", "runpy"),
    *("asyncio", "signal", "code", "inspect", "io", "fileinput", "marshal", "shelve"),
}
_CALLS = {
    *("open", "exec", "eval", "compile", "input", "breakpoint", "globals", "locals", "vars"),
    *("getattr", "setattr", "delattr", "memoryview", "exit", "quit"),
}
# Methods of any object that reach the disk, a program or the network.
_METHODS = {
    *("system", "popen", "spawn", "fork", "execv", "execve", "connect", "sendall", "urlopen"),
    *("write_text", "write_bytes", "read_text", "read_bytes", "unlink", "rmdir", "rmtree"),
    *("import_module", "load_module", "tofile", "fromfile", "memmap", "from_file"),
}


def forbidden_uses(source: bytes) -> list[str]:
    """Return a line of text for each forbidden use in a module, wherever it stands.

    Walks the whole syntax tree, so decorators, defaults, annotations, comprehensions and the
    expressions inside f-strings count like any statement.
    """
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.extend(f"import {alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append(f"from {node.module or '.'} import")
        elif isinstance(node, ast.Name):
            if node.id in _CALLS or _hidden(node.id) or node.id in _MODULES:
                found.append(node.id)
        elif isinstance(node, ast.Attribute) and (node.attr in _METHODS or _hidden(node.attr)):
            found.append(f".{node.attr}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.extend(f"{word!r}" for word in node.value.split() if _hidden(word))
    return found


def _hidden(name: str) -> bool:
    """Return whether a name is one of the double-underscore doors to everything."""
    return name.startswith("__") and name.endswith("__") and name not in ("__init__", "__name__")
