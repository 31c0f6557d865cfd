"""Arguments and options that several commands share.

Their help is translated when this module is imported, which is after the language was chosen.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from breaklab.cli.complete import complete_bug_id, complete_variant
from breaklab.i18n import _

OptionalBugId = Annotated[
    str | None,
    typer.Argument(
        metavar="[ID]",
        help=_("The break; default: the one that is applied."),
        autocompletion=complete_bug_id,
    ),
]
Variant = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=_("Another variant than the break's first."),
        autocompletion=complete_variant,
    ),
]
HangTimeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.1, help=_("Silent for so long counts as a stall.")),
]
TotalTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        help=_("Limit on the whole run; default: five times a healthy one, once that is known."),
    ),
]
Fault = Annotated[
    str,
    typer.Option(
        metavar="FAULT",
        help=_(
            "Play a sick machine: slow:rank=1,factor=5  stop:rank=2,step=3  kill:rank=0,step=4."
        ),
    ),
]
Launcher = Annotated[
    Literal["fork", "torchrun"],
    typer.Option(help=_("How ranks start: forked from a warm parent, or by torchrun.")),
]
Diagnose = Annotated[
    bool, typer.Option("--diagnose", help=_("Show where each rank waits; recorded as help used."))
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help=_("Let Python codemods run from packs that are not your own.")),
]
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help=_("How many proofs at a time."))]
Plain = Annotated[
    bool, typer.Option("--plain", help=_("Plain lines also on a terminal, no moving picture."))
]
TrainingArgs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- ARGS]", help=_("Arguments for the training.")),
]


def json_option(keys: str) -> Any:
    """Return the ``--json`` option of a command; ``keys`` of its answer are its interface."""
    return typer.Option("--json", help=_("Print JSON. Keys: {keys}.").format(keys=keys))


def examples(*commands: str) -> str:
    """Return an epilog that shows how a command is called, kept line by line."""
    title = _("Example:") if len(commands) == 1 else _("Examples:")
    return "\n".join(["\b", title, *(f"  {command}" for command in commands)])
