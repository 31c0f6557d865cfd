"""One module for each command or small group; each registers itself on the app."""

from __future__ import annotations

import typer

from breaklab.cli.commands import (
    apply,
    check,
    doctor,
    hint,
    lint,
    list_,
    reveal,
    revert,
    run,
    status,
    test,
    verify,
)

_IN_ORDER_OF_USE = (
    list_, apply, status, run, test, hint, check, revert, reveal, lint, verify, doctor
)  # fmt: skip


def register_all(app: typer.Typer) -> None:
    """Register every command, in the order a learner meets them."""
    for module in _IN_ORDER_OF_USE:
        module.register(app)
