"""From a change in the tree to the draft of a spec, with what was seen of the change."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from breaklab.cli.render import Screen
from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.model import BreakSpec, Project

if TYPE_CHECKING:
    from breaklab.author.change import Change, Derivation
    from breaklab.prove.observe import Observation


@dataclass(frozen=True)
class Wish:
    """What an author wants of a new spec."""

    bug_id: str
    slug: str
    lab: str  # "": the one that has the file
    variant: str  # what to call the run; "": its outcome
    args: tuple[str, ...]  # for the training
    run: bool  # look which tests go red and how a run ends


@dataclass(frozen=True)
class Draft:
    """A spec that was begun from a change."""

    text: str
    change: Change
    derivation: Derivation
    seen: Observation | None  # None where nothing was run
    variant: str


def draft_from_change(project: Project, wish: Wish, on_start: Callable[[], None]) -> Draft:
    """Return the draft for the one change that is in the tree; nothing is written.

    Args:
        project: whose tree to look at.
        wish: what is wanted.
        on_start: called before tests and ranks are started, which takes a while.

    Raises:
        ProjectError: there is not exactly one changed file.
        SiteError: no pattern makes the change.
        RunError: nothing can be learnt from runs: the lab is not green or not healthy without it.
    """
    from breaklab.author.change import change_in_tree

    return draft_of(project, wish, change_in_tree(project, wish.lab), on_start)


def draft_of(project: Project, wish: Wish, change: Change, on_start: Callable[[], None]) -> Draft:
    """Return the draft for a change, in the tree or not; nothing is written.

    Raises:
        SiteError: no pattern makes the change.
        RunError: nothing can be learnt from runs: the lab is not green or not healthy without it.
    """
    from breaklab.author.change import derivation
    from breaklab.author.new import Observed, draft

    derived = derivation(change)
    seen, variant, runs = None, "", []
    if wish.run:
        on_start()
        seen = _observe(project, change, derived.broken, wish.args)
        variant = wish.variant or seen.outcome.value
        runs.append((variant, Observed(seen.outcome, seen.at_step, wish.args)))
    text = draft(
        wish.bug_id,
        derived,
        slug=wish.slug,
        lab=wish.lab,
        red=seen.red if seen else (),
        runs=runs,
    )
    return Draft(text, change, derived, seen, variant)


def _observe(project: Project, change: Change, broken: bytes, args: tuple[str, ...]) -> Observation:
    from breaklab.prove.controls import Controls
    from breaklab.prove.observe import observe
    from breaklab.ranks.launch import warm_parent

    name = change.path.relative_to(project.root.resolve()).as_posix()
    controls = Controls(project, change.lab, {name: change.pristine})
    try:
        with warm_parent(change.lab) as warm:
            return observe(project, change.lab, change.file, broken, warm, controls, args=args)
    except RunError as error:
        hint = _("mend that first, or write the draft without a look: --no-run")
        raise RunError(error.message, hint=error.hint or hint) from error


def keys_to_fill_in(path: Path) -> list[str]:
    """Return the key paths of a new spec that its author has still to fill in."""
    from breaklab.author.lint import unfinished
    from breaklab.author.new import TODO
    from breaklab.spec.breaks import load_spec

    spec = load_spec(path)
    assert isinstance(spec, BreakSpec)
    parts = {"inject.file": spec.inject.file, "inject.find": spec.inject.find}
    keys = [*unfinished(spec), *(key for key, value in parts.items() if value == TODO)]
    return keys if spec.red else [*keys, "expect.red"]


def print_keys_to_fill_in(screen: Screen, path: Path) -> None:
    """Print what is still to be written in a new spec, if anything is."""
    keys = keys_to_fill_in(path)
    if keys:
        text = _("Still to be written: {keys}").format(keys=", ".join(keys))
        screen.prose(text, "warn")


def schema_step(path: Path) -> list[tuple[str, str]]:
    """Return the command, with its purpose, that lays the schema beside a spec; [] if it is there.

    The editor line of a spec names it.
    """
    schema = path.parent / "schema.json"
    if schema.exists():
        return []
    purpose = _("once: what each key may hold, for your editor")
    return [(f"breaklab schema --write {typed(schema)}", purpose)]


def typed(path: Path) -> str:
    """Return a path as it can be typed in the folder that we stand in."""
    return shlex.quote(os.path.relpath(path))
