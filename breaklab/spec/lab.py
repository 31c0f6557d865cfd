"""From ``lab.yaml`` to a :class:`Lab`. Any repository becomes a lab by adding this one file."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from breaklab.i18n import _
from breaklab.model import Entrypoint, Lab, Metrics, Text
from breaklab.spec.reader import Fields, Reader

MANIFEST = "lab.yaml"
FORMAT = 1
LAB_KEYS = (
    *("format", "name", "title", "source", "tests", "entrypoint", "step_line", "metrics"),
    *("preload", "python", "journal", "collectives"),
)
REQUIRED = ("format", "name", "source", "tests", "entrypoint")
ENTRYPOINT_KEYS = ("module", "script", "args", "num_ranks")
METRICS_KEYS = ("args", "agree", "compare", "count", "tolerance", "curves", "sketch")
# What nearly every training imports, some of it only in its first step; ranks are forked with it.
PRELOAD = ("torch", "torch.distributed", "torch.nn.functional", "torch._dynamo", "torch.optim")
ANY_STEP = r"(?i)\bstep[ =:]+(?P<step>\d+)"  # where a lab does not say what its steps look like
_MAX_PATTERN = 500  # characters of a regular expression


def load_lab(path: Path) -> Lab:
    """Read a manifest.

    Raises:
        SpecError: with every finding: file, line, column, what was found and what is wanted.
    """
    reader = Reader(path)
    fields = reader.fields(reader.root, LAB_KEYS, REQUIRED)
    reader.format(fields.get("format"), FORMAT)
    root = path.resolve().parent
    name = reader.string(fields.get("name"), "name")
    lab = Lab(
        root=root,
        name=name,
        title=reader.text(fields["title"], "title") if "title" in fields else Text({"en": name}),
        source=_folder(reader, fields, "source", root),
        tests=_folder(reader, fields, "tests", root),
        entrypoint=_entrypoint(reader, fields.get("entrypoint")),
        step_line=_pattern(reader, fields.get("step_line")) or ANY_STEP,
        metrics=_metrics(reader, fields.get("metrics")),
        preload=reader.strings(fields["preload"], "preload") if "preload" in fields else PRELOAD,
        python=reader.string(fields.get("python"), "python"),
        journal=reader.string(fields.get("journal"), "journal"),
        collectives=reader.strings(fields.get("collectives"), "collectives"),
    )
    reader.finish()
    return lab


def _folder(reader: Reader, fields: Fields, key: str, root: Path) -> Path:
    node = fields.get(key)
    relative = reader.string(node, key)
    folder = (root / relative).resolve()
    if node is not None and relative and not folder.is_dir():
        message = _("`{key}` is `{value}`, but there is no folder {folder}").format(
            key=key, value=relative, folder=folder
        )
        reader.add(node, "path", message)
    return folder


def _entrypoint(reader: Reader, node: yaml.Node | None) -> Entrypoint:
    if node is None:
        return Entrypoint(module="")
    fields = reader.fields(node, ENTRYPOINT_KEYS, what="entrypoint")
    if fields and ("module" in fields) == ("script" in fields):
        reader.add(node, "entrypoint", _("give exactly one of `module` and `script`"))
    return Entrypoint(
        module=reader.string(fields.get("module"), "entrypoint.module"),
        script=reader.string(fields.get("script"), "entrypoint.script"),
        args=reader.strings(fields.get("args"), "entrypoint.args"),
        num_ranks=reader.integer(fields.get("num_ranks"), "entrypoint.num_ranks", 1, 64) or 2,
    )


def _pattern(reader: Reader, node: yaml.Node | None) -> str:
    pattern = reader.string(node, "step_line")
    if node is None or not pattern:
        return ""
    try:
        compiled = re.compile(pattern[:_MAX_PATTERN])
    except re.error as error:
        message = _("`step_line` is no regular expression: {reason}").format(reason=error)
        reader.add(node, "pattern", message)
        return ""
    if "step" not in compiled.groupindex or len(pattern) > _MAX_PATTERN:
        message = _("`step_line` must hold the group step, in under {limit} letters")
        reader.add(node, "pattern", message.format(limit=_MAX_PATTERN), "(?P<step>\\d+)")
    return pattern


def _metrics(reader: Reader, node: yaml.Node | None) -> Metrics | None:
    if node is None:
        return None
    fields = reader.fields(node, METRICS_KEYS, ("args",), "metrics")
    return Metrics(
        args=reader.strings(fields.get("args"), "metrics.args"),
        agree=reader.strings(fields.get("agree"), "metrics.agree"),
        compare=reader.strings(fields.get("compare"), "metrics.compare"),
        count=reader.strings(fields.get("count"), "metrics.count"),
        tolerance=reader.number(fields.get("tolerance"), "metrics.tolerance", Metrics.tolerance),
        curves=reader.strings(fields.get("curves"), "metrics.curves"),
        sketch=reader.string(fields.get("sketch"), "metrics.sketch"),
    )
