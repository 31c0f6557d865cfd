"""Make text from strangers safe to print: specs, training output and test reports are only data."""

from __future__ import annotations

import re
from functools import cache

_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, ...: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
# These reorder text on screen and not in the file, so that a reader sees what isn't there.
_DIRECTIONS = {0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_REMOVED = dict.fromkeys(_CONTROLS | _DIRECTIONS)


def clean(text: str) -> str:
    """Return ``text`` without terminal escapes, control characters and direction overrides."""
    if text.isascii() and text.isprintable():
        return text
    # Escapes first, whole: stripping only ESC would leave "[31m" behind.
    if "\x1b" in text or "\x9b" in text:
        text = _escapes().sub("", text)
    return text.translate(_REMOVED)


@cache
def _escapes() -> re.Pattern[str]:
    """Compile at first use: nearly no text holds an escape, and commands must start fast."""
    return re.compile(_ESCAPES, re.DOTALL)


def one_line(text: str) -> str:
    """Return ``text`` cleaned, with every run of white space as one blank."""
    return " ".join(clean(text).split())


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line; the whole text if it has only one."""
    whole = one_line(text)
    end = min((whole.find(mark) for mark in (". ", "? ", "! ") if mark in whole), default=-1)
    return whole if end < 0 else whole[: end + 1]
