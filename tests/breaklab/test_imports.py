"""The import rules of ARCHITECTURE.md, read from the source with ast and from a real process."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "breaklab"
LAYERS = (
    {"model", "errors", "i18n", "__init__"},
    {"spec"},
    {"inject"},
    {"tree", "ranks"},
    {"learn", "author", "prove", "pytest_plugin"},
    {"compare"},
    {"cli"},
    {"__main__"},
)
OWNERS = {
    "typer": {"cli"},
    "click": set[str](),
    "rich": {"cli"},
    "yaml": {"spec"},
    "libcst": {"inject"},
    "jinja2": {"compare"},
    "matplotlib": {"compare"},
    "torch": {"ranks", "pytest_plugin"},
    "numpy": {"ranks", "pytest_plugin"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(part: str) -> int:
    return next(index for index, names in enumerate(LAYERS) if part in names)


def part_of(path: Path) -> str:
    """The package or top-level module of breaklab that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that is imported, at any depth; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_import_time(tree: ast.Module) -> Iterator[str]:
    """What a module imports when it is itself imported: not in functions, not for types only."""
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        todo.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def test_imports_inside_breaklab_point_down() -> None:
    wrong = []
    for path in MODULES:
        here = part_of(path)
        for name in imports(parse(path)):
            if not name.startswith("breaklab."):
                continue
            there = name.split(".")[1]
            if there not in {name for layer in LAYERS for name in layer}:
                there = "__init__"  # a value of the package itself, such as __version__
            if there != here and layer_of(there) >= layer_of(here) > 0:
                wrong.append(f"{path.relative_to(REPO)} imports {name}")
    assert not wrong


def test_model_and_errors_import_only_the_standard_library() -> None:
    for module in ("model", "errors"):
        for name in imports(parse(PACKAGE / f"{module}.py")):
            assert name.split(".")[0] in sys.stdlib_module_names, f"{module} imports {name}"


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_library_is_imported_only_by_its_owner(library: str) -> None:
    users = {
        path.relative_to(REPO).as_posix()
        for path in MODULES
        if any(name.split(".")[0] == library for name in imports(parse(path)))
        and part_of(path) not in OWNERS[library]
    }
    assert not users


def test_no_module_imports_torch_when_it_is_imported() -> None:
    eager = {
        path.relative_to(REPO).as_posix()
        for path in MODULES
        if any(name.split(".")[0] in ("torch", "numpy") for name in at_import_time(parse(path)))
    }
    assert not eager


def test_breaklab_imports_no_lab_and_no_lab_imports_breaklab() -> None:
    labs = {path.name for path in REPO.glob("labs/*/src/*") if path.is_dir()}
    for path in MODULES:
        assert not labs & {name.split(".")[0] for name in imports(parse(path))}, path
    for path in REPO.glob("labs/**/*.py"):
        assert "breaklab" not in {name.split(".")[0] for name in imports(parse(path))}, path


def modules_loaded_by(*args: str, cwd: Path) -> set[str]:
    """The modules in sys.modules at the end of a real ``breaklab`` process that succeeded."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr))\n"
        "from breaklab.cli.app import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize(
    "args", [("hint", "35-01"), ("list",), ("status",), ("--help",)], ids=lambda args: args[0]
)
def test_quick_commands_start_without_torch_and_libcst(
    args: tuple[str, ...], tiny_project: Path
) -> None:
    loaded = modules_loaded_by(*args, cwd=tiny_project)
    assert "breaklab.cli.app" in loaded
    assert not {"torch", "libcst", "numpy", "pytest"} & loaded


def test_the_probe_of_loaded_modules_sees_libcst_where_it_is_used(tiny_project: Path) -> None:
    assert "libcst" in modules_loaded_by("apply", "35-01", cwd=tiny_project)
