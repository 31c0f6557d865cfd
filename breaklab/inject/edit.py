"""Put a break into source bytes: only the site's own bytes change.

The tree of LibCST says where the site is; the edit itself is made on the text, so everything else
keeps its bytes, whatever the newlines, the encoding or the formatting.
"""

from __future__ import annotations

import codecs
import io
import textwrap
import tokenize
from dataclasses import dataclass
from functools import lru_cache

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.codemod import load_codemod, run_codemod
from breaklab.inject.layout import indent_at, line_start, newline_at, reindented
from breaklab.inject.newcode import expression_at_site, statements_at_site
from breaklab.inject.pattern import Pattern, compile_pattern, parse_expression
from breaklab.inject.site import Site, find_site
from breaklab.inject.source import NEWLINE, Source, parse_source
from breaklab.model import Action, Injection

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
    """Return ``source`` with a break in it.

    Args:
        source: the pristine bytes of ``injection.file``.
        injection: a pattern with an action, or a codemod that is trusted.
        path: the file's name for messages.

    Raises:
        SiteError: the source or the new code is no Python, there is not exactly one site, or the
            codemod is not trusted.
    """
    path = path or injection.file
    try:
        if injection.codemod:
            return _by_codemod(source, injection, path)
        return _by_pattern(source, injection, path)
    except RecursionError as error:
        raise SiteError(_("the pattern or the new code is too deeply nested")) from error


def _by_pattern(source: bytes, injection: Injection, path: str) -> Injected:
    bom, encoding, parsed = _parsed(source, path)
    edits = _edits(parsed, injection)
    changed = _changed(parsed.text, edits)
    _check_python(changed)
    try:
        encoded = changed.encode(encoding)
    except UnicodeEncodeError as error:
        message = _("the new code can't be written in the file's encoding, {encoding}")
        raise SiteError(message.format(encoding=encoding)) from error
    return Injected(bom + encoded, parsed.line_at(min(edit.start for edit in edits)))


def _by_codemod(source: bytes, injection: Injection, path: str) -> Injected:
    changed = run_codemod(load_codemod(injection), source, path)
    _check_python(changed)
    before, after = source.split(b"\n"), changed.split(b"\n")
    pairs = zip(before, after, strict=False)
    first = next((line for line, (old, new) in enumerate(pairs, start=1) if old != new), 0)
    return Injected(changed, first or min(len(before), len(after)))


def read_source(source: bytes, path: str) -> Source:
    """Return a file's bytes parsed.

    Raises:
        SiteError: they can't be decoded, or are no Python.
    """
    return _parsed(source, path)[2]


@lru_cache(maxsize=32)  # lint and proofs look at the same few files for many breaks
def _parsed(source: bytes, path: str) -> tuple[bytes, str, Source]:
    """Return the byte order mark, the encoding and the parsed source."""
    bom = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
    try:
        head = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # lines as Python reads them
        encoding, _lines = tokenize.detect_encoding(io.BytesIO(head).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = source[len(bom) :].decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        message = _("{path} can't be decoded: {reason}").format(path=path, reason=error)
        raise SiteError(message) from error
    return bom, encoding, parse_source(text, path)


def _changed(text: str, edits: list[Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def pattern_of(injection: Injection) -> Pattern:
    """Return what an injection looks for: an expression only where it replaces one by one.

    Raises:
        SiteError: it is no Python.
    """
    code = textwrap.dedent(injection.code).strip("\r\n")
    replaces = injection.action is Action.REPLACE_WITH and parse_expression(code) is not None
    return compile_pattern(injection.find, as_statements=not replaces)


def _edits(source: Source, injection: Injection) -> list[Edit]:
    code = textwrap.dedent(injection.code).strip("\r\n")
    action = injection.action
    pattern = pattern_of(injection)
    site = find_site(source, pattern, injection.inside)
    if pattern.expression is not None:
        return [_replace_expression(source, site, code)]
    if action in _MOVES:
        return _move(source, site, injection)
    if action is Action.REPLACE_WITH:
        return [_replace_statements(source, site, code)]
    if action is Action.DELETE:
        return [_delete(source, site)]
    start, end = _lines_of(source, site)
    indent, newline = indent_at(source.text, start), newline_at(source, start, end)
    new = statements_at_site(code, source, site.captures, indent, newline)
    return [_insert(source, start, end, new, after=action is Action.INSERT_AFTER)]


def _replace_expression(source: Source, site: Site, code: str) -> Edit:
    start, end = source.span(site.nodes[0])
    return Edit(start, end, expression_at_site(code, source, site.captures, start, end))


def _replace_statements(source: Source, site: Site, code: str) -> Edit:
    """Replace the statements themselves: a comment behind them stays."""
    start, end = source.span(site.nodes[0])[0], source.span(site.nodes[-1])[1]
    indent, newline = indent_at(source.text, start), newline_at(source, start, end)
    new = statements_at_site(code, source, site.captures, indent, newline)
    if _shares_a_line(source.text, start, end) and (newline in new or new.rstrip().endswith(":")):
        raise _shared(source, site)
    return Edit(start, end, new.removeprefix(indent))


def _delete(source: Source, site: Site) -> Edit:
    if len(site.nodes) == len(site.block):
        return _replace_statements(source, site, "pass")
    start, end = _lines_of(source, site)
    return Edit(start, end, "")


def _move(source: Source, site: Site, injection: Injection) -> list[Edit]:
    anchor_pattern = compile_pattern(injection.code, as_statements=True)
    anchor = find_site(source, anchor_pattern, injection.inside)
    start, end = _lines_of(source, site)
    there, behind = _lines_of(source, anchor)
    indent, old = indent_at(source.text, there), indent_at(source.text, start)
    inner = {n - source.line_at(start) + 1 for n in source.string_lines}
    text = source.text[start + len(old) : end].rstrip("\r\n")
    moved = indent + reindented(text, old, indent, inner)
    after = injection.action is Action.MOVE_AFTER
    insertion = _insert(source, there, behind, moved, after=after)
    edits = [insertion, _delete(source, site)]
    if start < insertion.start < end:
        raise SiteError(_("the statement can't be moved into itself"))
    if _changed(source.text, edits) == source.text:
        raise SiteError(_("the statement already stands where it is to be moved"))
    return edits


def _insert(source: Source, start: int, end: int, code: str, *, after: bool) -> Edit:
    """Insert lines before or behind the lines from ``start`` to ``end``."""
    newline = newline_at(source, start, end)
    if not after:
        return Edit(start, start, code + newline)
    if not source.text[:end].endswith(("\n", "\r")):  # the file's last line has no newline
        return Edit(end, end, newline + code)
    return Edit(end, end, code + newline)


def _lines_of(source: Source, site: Site) -> tuple[int, int]:
    """Return the offsets of the whole lines that a site's statements fill.

    Raises:
        SiteError: another statement shares one of them.
    """
    start, end = source.span(site.nodes[0])[0], source.span(site.nodes[-1])[1]
    if _shares_a_line(source.text, start, end):
        raise _shared(source, site)
    newline = NEWLINE.search(source.text, end)
    return line_start(source.text, start), newline.end() if newline else len(source.text)


def _shares_a_line(text: str, start: int, end: int) -> bool:
    """Return whether there is other code on the lines of a span."""
    newline = NEWLINE.search(text, end)
    rest = text[end : newline.start() if newline else len(text)].strip(" \t\f;")
    before = text[line_start(text, start) : start].strip()
    return bool(before) or not (rest == "" or rest.startswith(("#", "\\")))


def _shared(source: Source, site: Site) -> SiteError:
    return SiteError(
        _("line {line} of {path} holds other code beside the site").format(
            line=source.line(site.nodes[0]), path=source.path
        )
    )


def _check_python(text: str | bytes) -> None:
    """Refuse what this interpreter can't compile: LibCST also takes newer syntax."""
    try:
        compile(text, "source", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        message = _("the source with the new code is not valid Python: line {line}: {reason}")
        raise SiteError(message.format(line=line, reason=reason)) from error
