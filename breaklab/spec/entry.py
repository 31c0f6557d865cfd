"""One break as YAML that people like to read: the entry of a journal."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

_WIDTH = 88


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that a diff stays a diff."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists inside mappings, too."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump_entry(fields: Mapping[str, str]) -> str:
    """Return ``fields`` as a YAML list of one mapping, keys in their order."""
    return yaml.dump(
        [dict(fields)], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH
    )
