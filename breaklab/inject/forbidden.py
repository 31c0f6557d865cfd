"""What new code may never use (R4): imports, programs, files, sockets, and ways to hide them.

A list of names can't make a stranger's code safe to run; it keeps a break from doing by accident,
or plainly, what no lesson needs. What a pack from a stranger may do is decided by trust.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from breaklab.inject.differing import differing, parsed

# Modules whose very name, or an attribute of that name, is refused however it was come by.
_DOORS = {
    *("os", "sys", "subprocess", "socket", "shutil", "pathlib", "importlib", "ctypes", "pickle"),
    *("multiprocessing", "pty", "tempfile", "urllib", "builtins", "runpy", "posix"),
}
# Modules refused where the lab imports them: their names may be a variable's elsewhere.
_MODULES = _DOORS | {
    *("asyncio", "signal", "code", "codeop", "inspect", "io", "fileinput", "marshal", "shelve"),
    *("nt", "threading", "webbrowser", "ftplib", "smtplib", "ssl", "sqlite3", "zipfile", "http"),
    *("tarfile", "glob", "cffi", "gc", "atexit", "site", "pdb", "zipimport", "dbm", "requests"),
}
_BUILTINS = {
    *("open", "exec", "eval", "compile", "input", "breakpoint", "globals", "locals", "vars"),
    *("getattr", "setattr", "delattr", "memoryview", "exit", "quit", "help"),
}
# Attributes of any object that reach the disk, a program, the network or a frame.
_ATTRIBUTES = {
    *("system", "popen", "spawn", "fork", "forkpty", "execv", "execve", "execvp", "posix_spawn"),
    *("connect", "bind", "listen", "sendall", "urlopen", "urlretrieve", "Popen", "check_output"),
    *("open", "write_text", "write_bytes", "read_text", "read_bytes", "touch", "mkdir", "unlink"),
    *("rmdir", "rmtree", "symlink_to", "hardlink_to", "chmod", "rename", "iterdir", "rglob"),
    *("import_module", "load_module", "load_library", "cpp_extension", "hub", "memmap"),
    *("tofile", "fromfile", "from_file", "loadtxt", "savetxt", "genfromtxt", "attrgetter"),
    *("f_globals", "f_builtins", "f_locals", "f_back", "gi_frame", "cr_frame", "tb_frame"),
}
# Ways of a library to read and write files; a lab's own names may be the same.
_LIBRARY_FILES = {(lib, name) for lib in ("torch", "np", "numpy") for name in ("load", "save")}
_COUNTED = {f"{lib}.{name}" for lib, name in _LIBRARY_FILES}
_HARMLESS = {"__init__", "__name__", "__call__", "__len__", "__iter__", "__next__", "__repr__"}
_HIDDEN = re.compile(r"__\w+__")
_PLACE = re.compile(r"^[/~]|://|\.\.[/\\]")  # an absolute path, a URL, a way up


def new_forbidden_uses(pristine: bytes, broken: bytes) -> list[str]:
    """Return what ``broken`` uses and ``pristine`` does not, sorted, each thing once.

    The whole syntax tree counts: decorators, defaults, annotations, comprehensions and the
    expressions inside f-strings like any statement. A call with other arguments is a new use.
    """
    old, new = differing(pristine, broken)
    known = _modules(pristine)
    if any(True for statement in (*old, *new) for _import in _imports(statement)):
        # Names may mean something else now, everywhere.
        old, new = parsed(pristine).body, parsed(broken).body
        more = Counter(_uses(new, _modules(broken))) - Counter(_uses(old, known))
    else:
        more = Counter(_uses(new, known)) - Counter(_uses(old, known))
    return sorted({what for what, _where in more})


@lru_cache(maxsize=32)
def _modules(source: bytes) -> frozenset[str]:
    """Return the names that may not be used in a source, for the modules that they are."""
    return frozenset(_DOORS) | frozenset(_names_from(parsed(source)))


def _imports(tree: ast.AST) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def _uses(statements: Sequence[ast.stmt], modules: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield each forbidden use with the code of the call around it."""
    todo: list[tuple[ast.AST, str]] = [(statement, "") for statement in statements]
    while todo:
        node, call = todo.pop()
        if isinstance(node, ast.Call):
            call = ast.dump(node)
        what = _forbidden(node, modules)
        if what:
            yield what, "" if what in _COUNTED else call
        todo.extend((child, call) for child in ast.iter_child_nodes(node))


def _forbidden(node: ast.AST, modules: frozenset[str]) -> str:
    """Return what a node uses that is forbidden, as text for a message; else empty."""
    if isinstance(node, ast.Import):
        return "import " + ", ".join(alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return f"from {'.' * node.level}{node.module or ''} import"
    if isinstance(node, ast.Name):
        hidden = _is_hidden(node.id)
        return node.id if hidden or node.id in _BUILTINS or node.id in modules else ""
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if (owner, node.attr) in _LIBRARY_FILES:
            return f"{owner}.{node.attr}"
        bad = node.attr in _ATTRIBUTES or node.attr in _DOORS or _is_hidden(node.attr)
        return f".{node.attr}" if bad else ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return _forbidden_text(node.value)
    return ""


def _forbidden_text(value: str | bytes) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if _PLACE.search(text):
        return f"the text {text[:40]!r}"
    hidden = [name for name in _HIDDEN.findall(text) if _is_hidden(name)]
    return f"the text {hidden[0]!r}" if hidden else ""


def _is_hidden(name: str) -> bool:
    """Return whether a name is one of the double-underscore doors to everything."""
    return bool(_HIDDEN.fullmatch(name)) and name not in _HARMLESS


def _names_from(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module has from forbidden modules, under whatever alias."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in _MODULES:
                    yield alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _MODULES:
            yield from (alias.asname or alias.name for alias in node.names)
