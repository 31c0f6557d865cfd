"""What the shell offers on Tab: bug ids and variants of this project; never an error."""

from __future__ import annotations

from contextlib import suppress

import typer

from breaklab.cli.text import one_line
from breaklab.errors import BreaklabError


def complete_bug_id(incomplete: str) -> list[tuple[str, str]]:
    """Return the bug ids that start with ``incomplete``, each with its symptom."""
    from breaklab.cli.lookup import open_project
    from breaklab.i18n import language
    from breaklab.learn.overview import load_overview

    with suppress(BreaklabError, OSError):
        rows = load_overview(open_project().project).rows
        return [
            (row.bug_id, one_line(row.symptom_in(language()))[:60])
            for row in rows
            if row.bug_id.startswith(incomplete)
        ]
    return []


def complete_bug_id_or_file(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return bug ids as :func:`complete_bug_id`; none after ``--merge``: the shell offers files."""
    return [] if ctx.params.get("merge") else complete_bug_id(incomplete)


def complete_variant(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the variants of the applied break that start with ``incomplete``."""
    from breaklab.cli.lookup import open_project

    with suppress(BreaklabError, OSError):
        opened = open_project()
        spec = opened.applied_spec()
        runs = spec.runs if spec else ()
        return [run.variant for run in runs if run.variant.startswith(incomplete)]
    return []


def complete_family(incomplete: str) -> list[str]:
    """Return the families of breaks that start with ``incomplete``."""
    from breaklab.cli.lookup import open_project
    from breaklab.learn.overview import load_overview

    with suppress(BreaklabError, OSError):
        families = {row.family for row in load_overview(open_project().project).rows}
        return sorted(family for family in families if family.startswith(incomplete))
    return []


def complete_lab(incomplete: str) -> list[str]:
    """Return the names of the project's labs that start with ``incomplete``."""
    from breaklab.cli.lookup import open_project
    from breaklab.spec.project import load_labs

    with suppress(BreaklabError, OSError):
        labs = load_labs(open_project().project)
        return [lab.name for lab in labs if lab.name.startswith(incomplete)]
    return []
