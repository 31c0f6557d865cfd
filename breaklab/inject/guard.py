"""Refuses code that would end the process: LibCST's parser overflows the C stack on deep nesting.

Python's own parser has limits for most of what nests, and says so; what it reads in a loop and
LibCST by recursion (long chains of operators, of strings, of dots, of ``elif``) is counted here.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

from breaklab.errors import SiteError
from breaklab.i18n import _

_MAX_CHARACTERS = 1 << 20
_MAX_CHAIN = 1_000  # LibCST's walks end at Python's recursion limit long before
_MAX_ELIF = 300
_CHAINING = {"and", "or", "not", "if", "else", "lambda", "await", "in", "is", "for", "yield"}
_MAYBE_CHAINING = re.compile(r"['\".=<>+*/%@&|^~-]|\b(?:and|or|not|if|lambda|await|elif)\b")
_OPENING, _CLOSING = "([{", ")]}"


def check_parseable(text: str, what: str) -> None:
    """Make sure that LibCST can parse a text and walk over it.

    Args:
        text: a module, or a pattern with its metavariables as identifiers.
        what: the text's name for messages.

    Raises:
        SiteError: the text is no Python, too long, or nested too deeply.
    """
    if len(text) > _MAX_CHARACTERS:
        raise SiteError(
            _("{what} is longer than {limit} characters").format(what=what, limit=_MAX_CHARACTERS)
        )
    try:
        ast.parse(text)
    except SyntaxError as error:
        message = _("{what} is not valid Python: line {line}: {reason}").format(
            what=what, line=error.lineno or 1, reason=error.msg
        )
        raise SiteError(message) from error
    except (MemoryError, RecursionError) as error:
        raise _too_deep(what) from error
    except ValueError as error:  # a NUL byte
        message = _("{what} is not valid Python: {reason}").format(what=what, reason=error)
        raise SiteError(message) from error
    if sum(1 for _match in _MAYBE_CHAINING.finditer(text)) > _MAX_ELIF and _is_deep(text):
        raise _too_deep(what)


def _too_deep(what: str) -> SiteError:
    return SiteError(_("{what} is nested too deeply to be looked at").format(what=what))


def _is_deep(text: str) -> bool:
    """Return whether a chain of operators, strings, dots or ``elif`` is too long."""
    chains = [0]  # for each open bracket, how long the chain is since the last comma
    num_elif = 0
    last = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            chains = [0]
        elif token.string in _OPENING and token.type == tokenize.OP:
            chains[-1] += 1
            chains.append(0)
        elif token.string in _CLOSING and token.type == tokenize.OP and len(chains) > 1:
            chains.pop()
        elif token.string == ",":
            chains[-1] = 0
        elif token.string in _CHAINING or token.type == tokenize.OP:
            chains[-1] += 1
        else:
            chains[-1] += token.type == tokenize.STRING == last
        num_elif += token.string == "elif"
        if sum(chains) > _MAX_CHAIN or num_elif > _MAX_ELIF:
            return True
        if token.type != tokenize.NL:
            last = token.type
    return False
