"""A spec to begin with: from a change that was made, or from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from breaklab.author.change import Derivation
from breaklab.errors import ProjectError
from breaklab.i18n import _
from breaklab.model import Outcome, Project
from breaklab.spec.breaks import BUG_ID
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.rewrite import Value, rewritten
from breaklab.spec.schema import EDITOR_LINE

TODO = "TODO"  # lint finds every text that still says this

_TEXTS = ("concept", "symptom", "hidden_cause", "lesson")
_TEMPLATE = """\
{editor_line}
format: 1
bug-id: {bug_id}
slug: {slug}
family: TODO  # {family}
{lab}difficulty: 1  # {difficulty}
# prerequisites: [35-01]  # {prerequisites}
concept:  # {concept}
  en: TODO
  es: TODO
symptom:  # {symptom}
  en: TODO
  es: TODO
hidden_cause:  # {hidden_cause}
  en: TODO
  es: TODO
hints:  # {hints}
  - en: TODO
    es: TODO
  - en: TODO
    es: TODO
  - en: TODO
    es: TODO
lesson:  # {lesson}
  en: TODO
  es: TODO
sources:  # {sources}
  - TODO
inject:
{inject}
fix_diff: TODO
expect:
  red: []
  runs: []
"""
_BY_HAND = """\
  file: TODO  # {file}
  inside: TODO  # {inside}
  find: TODO  # {find}
  # {actions}
  replace_with: TODO"""


@dataclass(frozen=True)
class Observed:
    """What a run with the break showed."""

    outcome: Outcome
    at_step: int | None = None
    args: tuple[str, ...] = ()


def free_path(project: Project, bug_id: str) -> Path:
    """Return where the spec of a new break goes.

    Raises:
        ProjectError: the id has another form, or was used already; once used, it stays used.
    """
    if not BUG_ID.fullmatch(bug_id):
        raise ProjectError(_("`{bug_id}` must look like 35-40").format(bug_id=bug_id))
    if not project.breaks:
        raise ProjectError(
            _("the project {root} has no folder for breaks").format(root=project.root),
            hint=_('add `breaks = ["breaks"]` to [tool.breaklab] in pyproject.toml'),
        )
    catalogue = load_catalogue(project)
    path = project.breaks[0] / f"{bug_id}.yaml"
    if bug_id in catalogue.specs or bug_id in catalogue.retired or path.exists():
        raise ProjectError(_("the bug-id {bug_id} is taken").format(bug_id=bug_id))
    return path


def write_new(path: Path, text: str) -> None:
    """Write a new spec, never over another one; its folder is made where there is none yet.

    Raises:
        ProjectError: there is a file of that name, or it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise ProjectError(
            _("{path} can't be written: {reason}").format(path=path, reason=error.strerror)
        ) from error


def scaffold(bug_id: str, slug: str = "", lab: str = "") -> str:
    """Return a spec whose every key explains itself, to be filled in by hand.

    Args:
        bug_id: of the new break.
        slug: a short name; default: one to be filled in.
        lab: the name of its lab; default: the one that has the file.
    """
    inject = _BY_HAND.format(
        file=_("what changes, relative to the lab's root"),
        inside=_("function, Class.method or outer.inner; leave it out for the whole file"),
        find=_("Python, matched as syntax; $NAME is any expression, $$$NAME any number"),
        actions=_(
            "or insert_before, insert_after: new code; delete: true; "
            "move_before, move_after: a pattern"
        ),
    )
    return _filled(bug_id, slug, lab, inject)


def draft(
    bug_id: str,
    derivation: Derivation,
    *,
    slug: str = "",
    lab: str = "",
    red: Sequence[str] = (),
    runs: Sequence[tuple[str, Observed]] = (),
) -> str:
    """Return a spec for a change that was made; only its texts are left to write.

    Args:
        bug_id: of the new break.
        derivation: what the change says.
        slug: a short name; default: one to be filled in.
        lab: the name of its lab; default: the one that has the file.
        red: the tests that went red with it.
        runs: what was seen, by the name of the variant.
    """
    injection = derivation.derived.injection
    text = _filled(bug_id, slug, lab, "  file: x")
    changes: dict[str, Value] = {"inject.file": injection.file}
    if injection.inside:
        changes["inject.inside"] = injection.inside
    changes["inject.find"] = _as_block(injection.find)
    changes[f"inject.{injection.action}"] = _as_block(injection.code) or "true"
    changes["fix_diff"] = derivation.fix_diff
    if red:
        changes["expect.red"] = list(red)
    text = rewritten(text, changes, Path(f"{bug_id}.yaml"))
    text = text.replace("  delete: 'true'\n", "  delete: true\n")
    if runs:
        lines = [f"    - {{{_run(variant, seen)}}}\n" for variant, seen in runs]
        text = text.replace("  runs: []\n", "  runs:\n" + "".join(lines))
    return text


def _as_block(code: str) -> str:
    return code + "\n" if "\n" in code else code


def _run(variant: str, seen: Observed) -> str:
    parts = [f"variant: {variant}"]
    if seen.args:
        parts.append("args: [" + ", ".join(f"'{arg}'" for arg in seen.args) + "]")
    parts.append(f"outcome: {seen.outcome}")
    if seen.at_step is not None and seen.outcome is Outcome.STALL:
        parts.append(f"at_step: {seen.at_step}")
    return ", ".join(parts)


def _filled(bug_id: str, slug: str, lab: str, inject: str) -> str:
    return _TEMPLATE.format(
        editor_line=EDITOR_LINE,
        bug_id=bug_id,
        slug=slug or TODO,
        lab=f"lab: {lab}\n" if lab else "",
        inject=inject,
        family=_("what kind of bug: sharding, reduction, checkpoint, ..."),
        difficulty=_("1 (first contact) to 5"),
        prerequisites=_("breaks to solve before"),
        concept=_("what the learner will have understood, in one sentence"),
        symptom=_("what is seen, never why; shown by `apply`"),
        hidden_cause=_("why; shown by `reveal` or once solved"),
        hints=_("from symptom to cause; the first names nothing that the fix changes"),
        lesson=_("what to take along; shown once solved"),
        sources=_('where people met it, as "owner/repo#1 title"'),
    )
