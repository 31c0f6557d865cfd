"""Typed reading of YAML nodes: collects every finding instead of stopping at the first."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import yaml

from breaklab.errors import Finding, SpecError
from breaklab.i18n import _
from breaklab.model import LANGUAGES, Text
from breaklab.spec.yamltree import place, read_yaml

T = TypeVar("T")
Fields = dict[str, yaml.Node]
_STR, _INT = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int"
NO_TEXT = Text({})


class Reader:
    """Reads one file; every method returns a usable value, wrong input also adds a finding."""

    def __init__(self, path: Path, root: yaml.Node | None = None) -> None:
        self.path = path
        self.root = root or read_yaml(path)
        self.findings: list[Finding] = []

    def finish(self) -> None:
        """Raise all findings together.

        Raises:
            SpecError: there are findings.
        """
        if self.findings:
            by_place = sorted(self.findings, key=lambda f: (f.location.line, f.location.column))
            raise SpecError(by_place)

    def add(self, node: yaml.Node, rule: str, message: str, hint: str = "") -> None:
        """Add a finding at ``node``."""
        self.findings.append(Finding(place(self.path, node), rule, message, hint))

    def fields(
        self, node: yaml.Node, known: Iterable[str], required: Iterable[str] = (), what: str = ""
    ) -> Fields:
        """Return the values of a mapping by key; unknown, missing and empty keys are findings."""
        if not isinstance(node, yaml.MappingNode):
            self._wrong(node, what, _("a mapping with keys"))
            if node is self.root:
                self.finish()
            return {}
        known = tuple(known)
        fields: Fields = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if name in known:
                fields[name] = value
            else:
                self._unknown(key, name, known)
        for name in required:
            if name not in fields:
                message = _("the key `{key}` is missing").format(key=name)
                self.add(node, "missing-key", message)
        return fields

    def string(self, node: yaml.Node | None, what: str, default: str = "") -> str:
        """Return a non-empty string; numbers are taken as they are written."""
        if node is None:
            return default
        if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
            self._wrong(node, what, _("a text"))
            return default
        if not node.value.strip():
            self.add(node, "empty", _("`{what}` is empty").format(what=what))
        return str(node.value)

    def integer(self, node: yaml.Node | None, what: str, low: int, high: int) -> int | None:
        """Return a whole number from ``low`` to ``high``, None where there is none."""
        if node is None:
            return None
        value = None
        if isinstance(node, yaml.ScalarNode) and node.tag == _INT:
            try:
                value = int(node.value, 10)
            except ValueError:
                value = None
        if value is None or not low <= value <= high:
            wanted = _("a whole number from {low} to {high}").format(low=low, high=high)
            self._wrong(node, what, wanted)
            return None
        return value

    def number(self, node: yaml.Node | None, what: str, default: float) -> float:
        """Return a positive number."""
        if node is None:
            return default
        try:
            value = float(node.value)
        except (TypeError, ValueError):
            value = 0.0
        if not 0.0 < value < float("inf"):
            self._wrong(node, what, _("a positive number"))
            return default
        return value

    def items(
        self, node: yaml.Node | None, what: str, read: Callable[[yaml.Node, str], T]
    ) -> tuple[T, ...]:
        """Return the items of a list, each read by ``read(node, name)``."""
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._wrong(node, what, _("a list"))
            return ()
        return tuple(read(item, f"{what}[{index}]") for index, item in enumerate(node.value))

    def strings(self, node: yaml.Node | None, what: str) -> tuple[str, ...]:
        """Return a list of non-empty strings."""
        return self.items(node, what, self.string)

    def text(self, node: yaml.Node | None, what: str) -> Text:
        """Return a text: one string, or one for each language."""
        if node is None:
            return NO_TEXT
        if isinstance(node, yaml.MappingNode):
            fields = self.fields(node, LANGUAGES, what=what)
            if not fields:
                self.add(node, "empty", _("`{what}` holds no text").format(what=what))
            return Text({lang: self.string(v, f"{what}.{lang}") for lang, v in fields.items()})
        return Text({"en": self.string(node, what)})

    def choice(self, node: yaml.Node | None, what: str, known: Iterable[str]) -> str:
        """Return one of the words in ``known``; the first where the node holds another."""
        known = tuple(known)
        word = self.string(node, what)
        if node is not None and word not in known:
            message = _("`{what}` is `{word}`; it must be one of {known}").format(
                what=what, word=word, known=", ".join(known)
            )
            self.add(node, "choice", message, _nearest(word, known))
        return word if word in known else known[0]

    def format(self, node: yaml.Node | None, newest: int) -> None:
        """Check the file's format number; a newer one is told apart from a wrong one.

        Raises:
            SpecError: the format is newer.
        """
        number = self.integer(node, "format", 1, 10**6)
        if node is not None and number is not None and number > newest:
            message = _("format {number} is newer than this breaklab knows ({newest})").format(
                number=number, newest=newest
            )
            # Whatever else looks wrong may be right in the newer format.
            where = place(self.path, node)
            raise SpecError([Finding(where, "format", message, _("upgrade breaklab"))])

    def _unknown(self, key: yaml.Node, name: str, known: tuple[str, ...]) -> None:
        message = _("unknown key `{key}`").format(key=name)
        hint = _nearest(name, known) or _("known keys: {known}").format(known=", ".join(known))
        self.add(key, "unknown-key", message, hint)

    def _wrong(self, node: yaml.Node, what: str, wanted: str) -> None:
        message = _("`{what}` is {found}; it must be {wanted}").format(
            what=what or _("the file"), found=_kind(node), wanted=wanted
        )
        self.add(node, "type", message)


def _nearest(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return _("did you mean `{word}`?").format(word=close[0]) if close else ""


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return _("a mapping")
    if isinstance(node, yaml.SequenceNode):
        return _("a list")
    if node.tag.endswith(":null"):
        return _("empty")
    shown = node.value if len(node.value) <= 40 else node.value[:37] + "..."
    return f"`{shown}`"
