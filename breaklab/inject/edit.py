"""Put a break into source bytes: only the site's own bytes change.

The tree of LibCST says where the site is; the edit itself is made on the text, so everything else
keeps its bytes, whatever the newlines, the encoding or the formatting.
"""

from __future__ import annotations

import codecs
import io
import re
import textwrap
import tokenize
from dataclasses import dataclass

import libcst as cst

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.match import equal
from breaklab.inject.pattern import Statement, compile_pattern, parse_expression, substitute
from breaklab.inject.site import Site, Source, find_site
from breaklab.model import Action, Injection

_NEWLINE = re.compile(r"\r\n?|\n")
_MOVES = (Action.MOVE_BEFORE, Action.MOVE_AFTER)


@dataclass(frozen=True)
class Injected:
    """A source with a break in it."""

    source: bytes
    line: int  # the first changed line, from 1


@dataclass(frozen=True)
class Edit:
    """Replace the text from ``start`` to ``end``."""

    start: int
    end: int
    text: str


def inject(source: bytes, injection: Injection, *, path: str = "") -> Injected:
    """Return ``source`` with the pattern's break in it.

    Args:
        source: the pristine bytes of ``injection.file``.
        injection: a pattern with an action; not a codemod.
        path: the file's name for messages.

    Raises:
        SiteError: the source or the new code is no Python, or there is not exactly one site.
    """
    bom, text, encoding = _decode(source, path or injection.file)
    parsed = Source(text, path or injection.file)
    edits = _edits(parsed, injection)
    changed = text
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        changed = changed[: edit.start] + edit.text + changed[edit.end :]
    _check_python(changed)
    try:
        encoded = changed.encode(encoding)
    except UnicodeEncodeError as error:
        raise SiteError(
            _("the new code can't be written in the file's encoding, {encoding}").format(
                encoding=encoding
            )
        ) from error
    first = min(edit.start for edit in edits)
    return Injected(bom + encoded, len(_NEWLINE.findall(text[:first])) + 1)


def _decode(source: bytes, path: str) -> tuple[bytes, str, str]:
    """Return the byte order mark, the text and its encoding."""
    bom = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _lines = tokenize.detect_encoding(io.BytesIO(source).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        return bom, source[len(bom) :].decode(encoding), encoding
    except (SyntaxError, UnicodeDecodeError) as error:
        message = _("{path} can't be decoded: {reason}").format(path=path, reason=error)
        raise SiteError(message) from error


def _edits(source: Source, injection: Injection) -> list[Edit]:
    code = textwrap.dedent(injection.code).strip("\n")
    action = injection.action
    replaces_expression = action is Action.REPLACE_WITH and parse_expression(code) is not None
    pattern = compile_pattern(injection.find, as_statements=not replaces_expression)
    site = find_site(source, pattern, injection.inside)
    if pattern.expression is not None:
        return [_replace_expression(source, site, code)]
    if action in _MOVES:
        return _move(source, site, injection)
    new = substitute(code, _texts(source, site))
    if action is Action.REPLACE_WITH:
        return [_replace_lines(source, site, new)]
    if action is Action.DELETE:
        return [_delete(source, site)]
    return [_insert(source, site, new, after=action is Action.INSERT_AFTER)]


def _texts(source: Source, site: Site) -> dict[str, str]:
    """Return what each metavariable captured, as code that can stand anywhere."""
    texts = {}
    for name, nodes in site.captures.items():
        code = source.code(nodes)
        if nodes and isinstance(nodes[0], Statement):
            code = textwrap.dedent(_indent_of(source, source.span(nodes[0])[0]) + code)
        texts[name] = code
    return texts


def _replace_expression(source: Source, site: Site, code: str) -> Edit:
    start, end = source.span(site.nodes[0])
    new = substitute(code, _texts(source, site))
    wanted = parse_expression(new)
    for text in (new, f"({new})"):
        changed = source.text[:start] + text + source.text[end:]
        if wanted is not None and _stands_alone(changed, start, start + len(text), wanted):
            return Edit(start, end, text)
    raise SiteError(_("the new code `{code}` can't stand at its site").format(code=new))


def _stands_alone(text: str, start: int, end: int, wanted: cst.BaseExpression) -> bool:
    """Return whether the text at a span is one expression there, equal to ``wanted``."""
    try:
        source = Source(text, "")
    except SiteError:
        return False
    queue: list[cst.CSTNode] = [source.module]
    while queue:
        node = queue.pop()
        if isinstance(node, cst.BaseExpression) and equal(wanted, node):
            first, last = source.span(node)
            if start <= first and last <= end:
                return True
        queue.extend(node.children)
    return False


def _replace_lines(source: Source, site: Site, code: str) -> Edit:
    start, end = _lines_of(source, site)
    return Edit(start, end, _at_site(source, start, end, code))


def _insert(source: Source, site: Site, code: str, *, after: bool) -> Edit:
    start, end = _lines_of(source, site)
    text = _at_site(source, start, end, code)
    if not after:
        newline = _newline_at(source, start, end)
        return Edit(start, start, text if text.endswith(("\n", "\r")) else text + newline)
    if not source.text[:end].endswith(("\n", "\r")):  # the file's last line has no newline
        return Edit(end, end, _newline_at(source, start, end) + text)
    return Edit(end, end, text)


def _delete(source: Source, site: Site) -> Edit:
    if len(site.nodes) == len(site.block):
        return _replace_lines(source, site, "pass")
    start, end = _lines_of(source, site)
    return Edit(start, end, "")


def _move(source: Source, site: Site, injection: Injection) -> list[Edit]:
    anchor = find_site(
        source, compile_pattern(injection.code, as_statements=True), injection.inside
    )
    start, end = _lines_of(source, site)
    moved = textwrap.dedent(source.text[start:end])
    insertion = _insert(
        source, anchor, moved.rstrip("\r\n"), after=injection.action is Action.MOVE_AFTER
    )
    if start <= insertion.start <= end:
        raise SiteError(_("the statement already stands where it is to be moved"))
    return [_delete(source, site), insertion]


def _lines_of(source: Source, site: Site) -> tuple[int, int]:
    """Return the offsets of the whole lines that a site's statements fill.

    Raises:
        SiteError: another statement shares one of them.
    """
    text = source.text
    start, end = source.span(site.nodes[0])[0], source.span(site.nodes[-1])[1]
    first = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    newline = _NEWLINE.search(text, end)
    rest = text[end : newline.start() if newline else len(text)].strip()
    if text[first:start].strip() or (rest and not rest.startswith("#")):
        raise SiteError(
            _("line {line} of {path} holds another statement beside the site").format(
                line=source.line(site.nodes[0]), path=source.path
            )
        )
    return first, newline.end() if newline else len(text)


def _at_site(source: Source, start: int, end: int, code: str) -> str:
    """Return ``code`` with the indentation and newlines of the lines from ``start`` to ``end``."""
    newline = _newline_at(source, start, end)
    unit = source.module.default_indent
    indent = _indent_of(source, start)
    lines = []
    for line in _NEWLINE.split(code):
        bare = line.lstrip(" ")
        levels, rest = divmod(len(line) - len(bare), 4)
        lines.append(indent + unit * levels + " " * rest + bare if line.strip() else "")
    ended = source.text[start:end].endswith(("\n", "\r"))
    return newline.join(lines) + (newline if ended else "")


def _indent_of(source: Source, offset: int) -> str:
    text = source.text
    first = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    match = re.compile(r"[ \t\f]*").match(text, first)
    return match[0] if match else ""


def _newline_at(source: Source, start: int, end: int) -> str:
    """Return the newline that the lines from ``start`` to ``end`` use, else the module's."""
    match = _NEWLINE.search(source.text, start, end)
    return match[0] if match else source.module.default_newline


def _check_python(text: str) -> None:
    try:
        cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise SiteError(
            _("the source with the new code is not valid Python: line {line}: {reason}").format(
                line=error.raw_line, reason=error.message
            )
        ) from error
