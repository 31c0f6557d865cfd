"""What people do to a source that should not matter to a break: layout, comments, order, quotes."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Sequence

import black

Block = ast.Module | ast.ClassDef
_PLAIN = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|\")(?P<text>.*)(?P=quote)", re.DOTALL)


def black_at(width: int) -> Callable[[str], str]:
    """Return black, at a line length."""
    mode = black.Mode(line_length=width, target_versions={black.TargetVersion.PY311})
    return lambda source: black.format_str(source, mode=mode)


def with_comments(source: str) -> str:
    """Write a comment above each statement, and one behind each simple one that ends its line."""
    lines = source.split("\n")
    above: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        line = lines[first - 1]
        indent = line[: len(line) - len(line.lstrip())]
        if not lines[node.lineno - 1][: node.col_offset].strip():  # it begins its line
            above[first] = f"{indent}# a remark"
        rest = lines[(node.end_lineno or 1) - 1].encode()[node.end_col_offset or 0 :]
        simple = not hasattr(node, "body") and node.lineno == node.end_lineno
        if simple and not rest.strip():
            lines[node.lineno - 1] = line.rstrip() + "  # another remark"
    return "\n".join(
        text
        for number, line in enumerate(lines, 1)
        for text in (above.get(number), line)
        if text is not None
    )


def reordered(source: str) -> str:
    """Write neighbouring functions, and the neighbouring methods of a class, in reverse order."""
    count = sum(isinstance(node, ast.ClassDef) for node in ast.walk(ast.parse(source)))
    for index in range(count):  # lines move inside one class only, so the others stay in place
        classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
        source = _reversed_runs(source, classes[index])
    return _reversed_runs(source, ast.parse(source))


def single_quoted(source: str) -> str:
    """Write every text in double quotes that holds none of the others in single quotes."""
    lines = source.split("\n")
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        match = _PLAIN.fullmatch(token.string) if token.type == tokenize.STRING else None
        if match is None or "'" in match["text"] or match["text"].endswith("\\"):
            continue
        quote = match["quote"].replace('"', "'")
        new = f"{match['prefix']}{quote}{match['text']}{quote}"
        (first, start), (last, end) = token.start, token.end
        before, after = lines[first - 1][:start], lines[last - 1][end:]
        lines[first - 1 : last] = (before + new + after).split("\n")
    return "\n".join(lines)


def _reversed_runs(source: str, block: Block) -> str:
    """Reverse each run of functions in a block that only blank lines part."""
    lines = source.split("\n")
    runs: list[list[range]] = [[]]
    for node in block.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _has_a_setter(node):
            runs.append([])
            continue
        extent = _extent(lines, node)
        if runs[-1] and any(lines[n - 1].strip() for n in range(runs[-1][-1].stop, extent.start)):
            runs.append([])
        runs[-1].append(extent)
    for run in runs:
        if len(run) > 1:
            texts = [lines[extent.start - 1 : extent.stop - 1] for extent in run]
            whole = _joined(lines, run, texts[::-1])
            lines[run[0].start - 1 : run[-1].stop - 1] = whole
    return "\n".join(lines)


def _joined(lines: list[str], run: Sequence[range], texts: Sequence[list[str]]) -> list[str]:
    """Return the functions in their new order, with the blank lines where they were."""
    whole = [*texts[0]]
    for left, right, text in zip(run, run[1:], texts[1:], strict=False):
        whole += lines[left.stop - 1 : right.start - 1] + text
    return whole


def _extent(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    """Return a function's lines, from 1, with its decorators and the comments right above."""
    start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    while start > 1 and lines[start - 2].strip().startswith("#"):
        start -= 1
    return range(start, (node.end_lineno or start) + 1)


def _has_a_setter(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Attribute) for each in node.decorator_list)
