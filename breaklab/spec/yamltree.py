"""YAML as nodes that know their place, read without trusting the file.

No tags, no aliases, no duplicate keys, bounded size: a spec may come from a stranger.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from breaklab.errors import Finding, Location, SpecError
from breaklab.i18n import _
from breaklab.spec.sealed import SealError, unsealed

MAX_BYTES = 1 << 20
MAX_LINE = 10_000  # characters; a longer one can nest deeper than the parser's stack
MAX_BRACKETS = 2_000
_MAX_SLIPS = 20  # lines to be quoted that are told at once
_QUOTE_IT = "quote-it"

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "map", "seq", "timestamp", "merge")
}
_ENTRY = re.compile(r"(?P<head>\s*(?:- +)*[a-z][\w-]*: +)(?P<value>\S.*)")
_ITEM = re.compile(r"(?P<head>\s*(?:- +)+)(?P<value>\S.*)")
_UNQUOTED = ("mapping values are not allowed", "cannot start any token", "expected <block end>")


def read_yaml(path: Path) -> yaml.Node:
    """Return the root node of a YAML file.

    Raises:
        SpecError: the file can't be read, is too large, or is no YAML; with line and column.
    """
    return parse_yaml(path, read_text(path))


def parse_yaml(path: Path, text: str) -> yaml.Node:
    """Return the root node of a YAML text.

    Args:
        path: the file it is from, for errors.
        text: the whole file.

    Raises:
        SpecError: it is no YAML, or holds tags, aliases or duplicate keys.
    """
    root = _compose(path, text)
    if root is None:
        message = _("the file is empty")
        raise SpecError([Finding(Location(str(path), 1, 1), "yaml", message)])
    if findings := _untrusted(path, root):
        raise SpecError(findings)
    return root


def _compose(path: Path, text: str) -> yaml.Node | None:
    """Return the root node; every line that only lacks quotes is told, not just the first."""
    findings: list[Finding] = []
    lines = text.split("\n")
    while True:
        try:
            root = yaml.compose("\n".join(lines), Loader=_Loader)
            break
        except yaml.MarkedYAMLError as error:
            finding = _syntax_finding(path, lines, error)
            known = {known.location.line for known in findings}
            if finding.rule != _QUOTE_IT or finding.location.line in known:
                raise SpecError(findings or [finding]) from error
            findings.append(finding)
            repaired = _quoted(lines[finding.location.line - 1])
            if not repaired or len(findings) == _MAX_SLIPS:
                raise SpecError(findings) from error
            lines[finding.location.line - 1] = repaired
        except (yaml.YAMLError, RecursionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            message = _("not valid YAML: {reason}").format(reason=reason)
            raise SpecError([Finding(Location(str(path), 1, 1), "yaml", message)]) from error
    if findings:
        raise SpecError(findings)
    return root


def place(path: Path, node: yaml.Node) -> Location:
    """Return where ``node`` starts, counting from 1."""
    return Location(str(path), node.start_mark.line + 1, node.start_mark.column + 1)


def read_text(path: Path) -> str:
    """Return a file's text, unsealed, within the limits of what the parser is given.

    Raises:
        SpecError: it can't be read, is too large, or is no UTF-8 text.
    """
    where = Location(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = _("can't be read: {reason}").format(reason=error.strerror)
        raise SpecError([Finding(where, "file", message)]) from error
    if len(data) > MAX_BYTES:
        message = _("is larger than {limit} bytes").format(limit=MAX_BYTES)
        raise SpecError([Finding(where, "file", message)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = _("is not UTF-8 text")
        raise SpecError([Finding(Location(str(path), line), "file", message)]) from error
    try:
        text = unsealed(text, MAX_BYTES)
    except SealError as error:
        message = _("is sealed, and damaged: it can't be read any more")
        raise SpecError([Finding(where, "file", message)]) from error
    too_long = next((n for n, line in enumerate(text.split("\n"), 1) if len(line) > MAX_LINE), 0)
    if too_long or text.count("[") + text.count("{") > MAX_BRACKETS:
        message = _("has a line of over {limit} characters, or nests too deeply").format(
            limit=MAX_LINE
        )
        raise SpecError([Finding(Location(str(path), too_long), "file", message)])
    return text


def _syntax_finding(path: Path, lines: list[str], error: yaml.MarkedYAMLError) -> Finding:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = error.problem or str(error)
    where = Location(str(path), line, column)
    repaired = _quoted(lines[line - 1]) if line <= len(lines) else ""
    if any(part in problem for part in _UNQUOTED) and (repaired or "mapping values" in problem):
        message = _(
            "not valid YAML: a text that holds `: `, or begins with a special character, must be "
            "quoted"
        )
        hint = _("quote it; the repaired line:") + f"\n{repaired}"
        if not repaired:
            hint = _("write `>-` behind the key, and the text on the lines below it, indented")
        return Finding(where, _QUOTE_IT, message, hint)
    return Finding(where, "yaml", _("not valid YAML: {reason}").format(reason=problem))


def _quoted(line: str) -> str:
    """Return ``line`` with its text quoted, that of its first key or of a list's item; or empty."""
    match = _ENTRY.fullmatch(line.rstrip()) or _ITEM.fullmatch(line.rstrip())
    if match is None or match["value"][0] in "'\"|>{[&*!":
        return ""
    return match["head"] + "'" + match["value"].replace("'", "''") + "'"


def _untrusted(path: Path, root: yaml.Node) -> list[Finding]:
    """Return a finding for each tag, alias and duplicate key."""
    findings = []
    seen: set[int] = set()
    queue = [root]
    while queue:
        node = queue.pop()
        if id(node) in seen:
            message = _("aliases are not allowed; write the text again")
            findings.append(Finding(place(path, node), "alias", message))
            continue
        seen.add(id(node))
        if node.tag not in _PLAIN_TAGS:
            message = _("the tag {tag} is not allowed").format(tag=node.tag)
            findings.append(Finding(place(path, node), "tag", message))
        if isinstance(node, yaml.SequenceNode):
            queue.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            queue.extend(value for _key, value in node.value)
            findings.extend(_duplicates(path, node))
    return findings


def _duplicates(path: Path, node: yaml.MappingNode) -> list[Finding]:
    findings = []
    first: dict[object, int] = {}
    for key, _value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is not None and name in first:
            message = _("the key `{key}` was given already on line {line}").format(
                key=name, line=first[name]
            )
            findings.append(Finding(place(path, key), "duplicate-key", message))
        elif name is not None:
            first[name] = key.start_mark.line + 1
    return findings
