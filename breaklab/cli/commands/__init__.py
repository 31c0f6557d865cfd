"""One module for each command or small group; a module is imported when its command is needed."""

from __future__ import annotations

from importlib import import_module

import typer

# Command -> module, in the order a learner meets them.
MODULES = {
    "init": "init",
    "list": "list_",
    "apply": "apply",
    "status": "status",
    "run": "run",
    "diagnose": "diagnose",
    "test": "test",
    "compare": "compare",
    "hint": "hint",
    "watch": "watch",
    "check": "check",
    "revert": "revert",
    "reveal": "reveal",
    "journal": "journal",
    "progress": "progress",
    "launch": "launch",
    "new": "new",
    "import": "import_",
    "lint": "lint",
    "verify": "verify",
    "refresh": "refresh",
    "suggest": "suggest",
    "schema": "schema",
    "unseal": "unseal",
    "doctor": "doctor",
}


def register(app: typer.Typer, command: str) -> None:
    """Import the module of ``command`` and add what it registers to ``app``."""
    import_module(f"{__name__}.{MODULES[command]}").register(app)
