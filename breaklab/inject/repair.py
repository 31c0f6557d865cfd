"""Bring a pattern up to date after the lab has moved or renamed what it matches."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from collections.abc import Mapping
from dataclasses import replace

from breaklab.errors import SiteError
from breaklab.inject.derive import derive
from breaklab.inject.edit import inject, pattern_of, read_source
from breaklab.inject.pattern import compile_pattern, readable, spelled
from breaklab.inject.site import Site, all_sites
from breaklab.inject.source import Source
from breaklab.model import Action, Injection

_MOVES = (Action.MOVE_BEFORE, Action.MOVE_AFTER)
_NAME = "NAMED"  # of the metavariables that stand for names


def repair(injection: Injection, pristine: bytes) -> Injection:
    """Return the injection with ``inside`` and renamed names as the source has them now.

    Args:
        injection: a pattern that has no site, or not one, in ``pristine``.
        pristine: the source as it is now.

    Raises:
        SiteError: the injection's own, where no repair is found that has exactly one site.
    """
    try:
        inject(pristine, injection)
        return injection
    except SiteError as error:
        source = read_source(pristine, injection.file)
        for inside in dict.fromkeys((injection.inside, "")):
            repaired = _renamed(replace(injection, inside=inside), pristine, source)
            if repaired is not None:
                return _with_inside(repaired, pristine)
        raise error


def _with_inside(injection: Injection, pristine: bytes) -> Injection:
    """Name the function that the site is in, where the injection looks in the whole file."""
    if injection.inside:
        return injection
    broken = inject(pristine, injection).source
    inside = derive(pristine, broken, injection.file).injection.inside
    return replace(injection, inside=inside)


def _renamed(injection: Injection, pristine: bytes, source: Source) -> Injection | None:
    """Return the injection with names replaced, as few as possible, so that it has one site."""
    texts = [injection.find, *([injection.code] if injection.action in _MOVES else [])]
    names = list(dict.fromkeys(name for text in texts for name in _names(text)))
    stand_ins = {name: f"${_NAME}{index}" for index, name in enumerate(names)}
    try:
        as_statements = pattern_of(injection).expression is None
        pattern = compile_pattern(_replaced(injection.find, stand_ins), as_statements=as_statements)
        sites = all_sites(source, pattern, injection.inside)
    except SiteError:
        return None
    found = []
    for site in sites:
        renames = _renames(site, names, source)
        if renames is None or len(renames) > max(1, len(names) // 2):
            continue
        candidate = replace(
            injection,
            find=_replaced(injection.find, renames),
            code=_replaced(injection.code, renames),
        )
        try:
            inject(pristine, candidate)
        except SiteError:
            continue
        found.append((len(renames), candidate))
    found.sort(key=lambda pair: pair[0])
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    return found[0][1]


def _renames(site: Site, names: list[str], source: Source) -> dict[str, str] | None:
    """Return which names the site has in place of the pattern's; None for more than a name."""
    renames = {}
    for index, name in enumerate(names):
        nodes = site.captures.get(f"{_NAME}{index}")
        if nodes is None:
            continue
        code = source.code(nodes)
        if not code.isidentifier():
            return None
        if code != name:
            renames[name] = code
    return renames


def _names(text: str) -> list[str]:
    """Return the identifiers of a pattern that a lab may have renamed."""
    return [
        token.string
        for token in _tokens(text)
        if token.type == tokenize.NAME
        and not keyword.iskeyword(token.string)
        and not hasattr(builtins, token.string)
        and token.string not in ("self", "cls")
        and not token.string.startswith("breaklab_")
    ]


def _replaced(text: str, names: Mapping[str, str]) -> str:
    """Return a pattern with some of its identifiers replaced; strings and comments stay."""
    lines = spelled(text).split("\n")
    for token in reversed(_tokens(text)):
        if token.type == tokenize.NAME and token.string in names:
            row, column = token.start
            line = lines[row - 1]
            end = column + len(token.string)
            lines[row - 1] = line[:column] + names[token.string] + line[end:]
    return readable("\n".join(lines))


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a pattern that was parsed before, its metavariables as identifiers."""
    try:
        return list(tokenize.generate_tokens(io.StringIO(spelled(text)).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
