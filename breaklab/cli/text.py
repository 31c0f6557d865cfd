"""Make text from strangers safe to print: specs, training output and test reports are only data."""

from __future__ import annotations

import re

# CSI, OSC and the like first, whole: stripping only ESC would leave "[31m" behind.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, ...: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
# Controls but tab and newline; and the marks that reorder text on screen, not in the file.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Return ``text`` without terminal escapes, control characters and direction overrides."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def first_line(text: str) -> str:
    """Return the first line that isn't blank, cleaned and stripped, or ``""``."""
    return next((line.strip() for line in clean(text).splitlines() if line.strip()), "")


def one_line(text: str) -> str:
    """Return ``text`` cleaned, with every run of white space as one blank."""
    return " ".join(clean(text).split())
