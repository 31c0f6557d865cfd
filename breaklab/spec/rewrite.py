"""Change values in a spec's text and leave everything else, comments included, as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from breaklab.errors import Finding, Location, SpecError
from breaklab.i18n import _
from breaklab.spec.yamltree import parse_yaml

Value = str | Sequence[str]
_INDENT = 2
# What a block of lines would lose or may not hold; in quotes it is escaped.
_NOT_IN_BLOCK = re.compile(r"[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")


def rewritten(text: str, changes: Mapping[str, Value], path: Path) -> str:
    """Return a spec's text with the values at some key paths replaced, or added at the end.

    Args:
        text: the whole file.
        changes: key path, such as ``inject.find`` or ``hints[0].en``, to its new text or list.
        path: the file, for errors.

    Raises:
        SpecError: the text is no YAML, or does not hold what it should afterwards.
    """
    for key, value in changes.items():
        text = _replaced(text, _keys(key), value, path)
    root = parse_yaml(path, text)
    for key, value in changes.items():
        if _value(_find(root, _keys(key))) != (value if isinstance(value, str) else [*value]):
            message = _("`{key}` could not be rewritten").format(key=key)
            raise SpecError([Finding(Location(str(path)), "rewrite", message)])
    return text


def _replaced(text: str, keys: list[str], value: Value, path: Path) -> str:
    root = parse_yaml(path, text)
    holder = _find(root, keys[:-1])
    if not isinstance(holder, yaml.MappingNode):
        message = _("there is no `{key}` to rewrite").format(key=".".join(keys))
        raise SpecError([Finding(Location(str(path)), "rewrite", message)])
    newline = "\r\n" if "\r\n" in text else "\n"
    pairs = {key.value: (key, node) for key, node in holder.value}
    if keys[-1] in pairs:
        key, node = pairs[keys[-1]]
        start, end = _extent(text, key, node)
    elif holder.flow_style:
        message = _("`{key}` can't be added to a mapping in braces").format(key=".".join(keys))
        raise SpecError([Finding(Location(str(path)), "rewrite", message)])
    else:
        last_key, last = holder.value[-1]
        key = last_key
        start = end = _next_line(text, _extent(text, last_key, last)[1])
    column = key.start_mark.column
    written = _written(value, column, in_braces=bool(holder.flow_style))
    entry = f"{keys[-1]}:{written}"
    if start == end:  # a new key on a line of its own
        entry = ("" if text[:start].endswith("\n") else "\n") + " " * column + entry
    whole_lines = text[start:end].endswith("\n") or start == end
    entry = entry.removesuffix("\n") + ("\n" if whole_lines else "")
    return text[:start] + entry.replace("\n", newline) + text[end:]


def _extent(text: str, key: yaml.Node, node: yaml.Node) -> tuple[int, int]:
    """Return the offsets from a key to behind its value; whole lines where it has its own."""
    start = key.start_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">"):
        return start, node.end_mark.index
    if isinstance(node, yaml.CollectionNode) and node.flow_style:
        return start, node.end_mark.index
    lines = text[start:].splitlines(keepends=True)
    length = len(lines[0])
    column = key.start_mark.column
    is_list = isinstance(node, yaml.SequenceNode)
    for line in lines[1:]:
        indent = len(line) - len(line.lstrip(" "))
        inside = indent > column or (is_list and indent == column and line.startswith("- ", column))
        if line.strip() and not inside:
            break
        length += len(line)
    return start, start + len(_without_blank_end(text[start : start + length], node))


def _next_line(text: str, offset: int) -> int:
    """Return where the next line begins, behind a comment on this one; the text's end if none."""
    if text[:offset].endswith("\n"):
        return offset
    return text.find("\n", offset) + 1 or len(text)


def _without_blank_end(text: str, node: yaml.Node) -> str:
    """Leave out empty lines behind a value: they part it from the next."""
    if isinstance(node, yaml.ScalarNode) and node.value.endswith(" \n"):
        return text  # lines of white space that belong to it
    return re.sub(r"(\r?\n)(?:[ \t]*\r?\n)+$", r"\1", text)


def _written(value: Value, column: int, *, in_braces: bool) -> str:
    """Return a value as it stands behind ``key:``, with what must end its last line."""
    indent = " " * (column + _INDENT)
    if not isinstance(value, str):
        if in_braces or not value:
            return " [" + ", ".join(_scalar(item, in_braces=True) for item in value) + "]"
        return "\n" + "".join(f"{indent}- {_scalar(item, in_braces=False)}\n" for item in value)
    in_block = not _NOT_IN_BLOCK.search(value) and not value.endswith("\n\n") and value.strip("\n")
    if "\n" in value and in_block and not in_braces:
        keep = "" if value.endswith("\n") else "-"
        digit = str(_INDENT) if value.startswith((" ", "\n")) else ""
        lines = value.removesuffix("\n").split("\n")
        return f" |{digit}{keep}\n" + "".join(
            f"{indent}{line}\n" if line else "\n" for line in lines
        )
    return " " + _scalar(value, in_braces=in_braces)


def _scalar(value: str, *, in_braces: bool) -> str:
    """Return a text of one line plain where it reads back as itself, else in quotes."""
    frame = "[{}]" if in_braces else "{}"
    try:
        node = yaml.compose(frame.format(value), Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        node = None
    if isinstance(node, yaml.SequenceNode) and len(node.value) == 1:
        node = node.value[0]
    if isinstance(node, yaml.ScalarNode) and node.value == value and node.tag.endswith(":str"):
        return value
    if "\n" in value or _NOT_IN_BLOCK.search(value):
        quoted: str = yaml.dump(value, default_style='"', width=10**9, allow_unicode=True)
        return quoted.strip()
    return "'" + value.replace("'", "''") + "'"


def _keys(path: str) -> list[str]:
    """Return a key path's parts; the index of a list is a part of digits."""
    return path.replace("[", ".").replace("]", "").split(".")


def _find(root: yaml.Node, keys: Sequence[str]) -> yaml.Node | None:
    node: yaml.Node | None = root
    for key in keys:
        if isinstance(node, yaml.SequenceNode):
            node = node.value[int(key)] if int(key) < len(node.value) else None
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        node = next((value for name, value in pairs if name.value == key), None)
    return node


def _value(node: yaml.Node | None) -> str | list[str] | None:
    if isinstance(node, yaml.SequenceNode):
        return [item.value for item in node.value]
    return node.value if isinstance(node, yaml.ScalarNode) else None
