"""``breaklab run``: real ranks of the lab, live, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breaklab.cli.complete import complete_variant
from breaklab.cli.lookup import OpenProject, open_project
from breaklab.cli.outcomes import exit_code_of, print_outcome, run_as_json
from breaklab.cli.ranklines import LivePrinter
from breaklab.cli.render import Screen
from breaklab.errors import BreaklabError, ExitCode
from breaklab.i18n import _
from breaklab.model import BreakSpec, Lab, RunPromise

if TYPE_CHECKING:
    from breaklab.ranks.jobs import RunReport
    from breaklab.ranks.outcome import Judged
    from breaklab.ranks.warm import WarmParent


@dataclass(frozen=True)
class RunRequest:
    """What a learner asked for, completed from the spec and the lab."""

    lab: Lab
    spec: BreakSpec | None
    variant: str
    args: tuple[str, ...]
    num_ranks: int
    hang_timeout_s: float


def register(app: typer.Typer) -> None:
    """Add ``run`` to the app."""
    app.command(
        "run",
        help=_(
            "Train on real ranks and say what became of it. With a break applied, the way its "
            "first variant does; with none, the healthy lab."
        ),
        epilog="\b\n"
        + _("Examples:")
        + "\n  breaklab run --variant silent"
        + "\n  breaklab run --hang-timeout 10 --num-ranks 4 -- --sync bucket",
    )(run)


def run(
    ctx: typer.Context,
    training_args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- ARGS]", help=_("Arguments for the training, after the variant's own.")
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=_("Another variant of the applied break."),
            autocompletion=complete_variant,
        ),
    ] = None,
    hang_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help=_("Silent for so long counts as a stall.")),
    ] = 60.0,
    num_ranks: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=_("How many ranks; default: the variant's.")),
    ] = None,
    diagnose: Annotated[
        bool,
        typer.Option("--diagnose", help=_("Show where each rank waits; recorded as help used.")),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help=_(
                "Print JSON: bug_id, lab, variant, args[], num_ranks, outcome, summary, exit_code, "
                "duration_s, last_step, stall, ends[], waits[]; the ranks' lines go to stderr."
            ),
        ),
    ] = False,
) -> None:
    """Run the lab, print its lines live, judge the outcome, exit with its code."""
    from breaklab.ranks.launch import warm_parent

    screen: Screen = ctx.obj
    opened = open_project(screen)
    request = _request(opened, variant, tuple(training_args or ()), num_ranks, hang_timeout)
    printer = LivePrinter(screen, err=json)
    with warm_parent(request.lab) as warm:
        report = _run(request, warm, printer)
        if report.stall:
            printer.stalled(report.stall)
        judged = _judge(opened, request, report, warm, screen)
    code = exit_code_of(judged.outcome, report)
    _record(opened, request, judged, report, diagnose)
    if json:
        screen.json(run_as_json(request, judged, report, code, diagnose=diagnose))
    else:
        print_outcome(screen, request, judged, report, diagnose=diagnose)
    if code is not ExitCode.OK:
        raise typer.Exit(int(code))


def _request(
    opened: OpenProject,
    variant: str | None,
    training_args: tuple[str, ...],
    num_ranks: int | None,
    hang_timeout_s: float,
) -> RunRequest:
    spec = opened.applied_spec()
    lab = opened.lab_of(spec) if spec else opened.default_lab()
    promise = _promise(spec, variant)
    return RunRequest(
        lab=lab,
        spec=spec,
        variant=promise.variant if promise else "",
        args=(*(promise.args if promise else ()), *training_args),
        num_ranks=num_ranks or (promise and promise.num_ranks) or lab.entrypoint.num_ranks,
        hang_timeout_s=hang_timeout_s,
    )


def _promise(spec: BreakSpec | None, variant: str | None) -> RunPromise | None:
    """Return the variant asked for, else the first; None with no break applied."""
    if spec is None:
        if variant is not None:
            raise BreaklabError(
                _("a variant belongs to a break, and none is applied"),
                hint=_("apply one first: breaklab list;  breaklab apply ID"),
            )
        return None
    if variant is None:
        return spec.runs[0] if spec.runs else None
    for promise in spec.runs:
        if promise.variant == variant:
            return promise
    known = ", ".join(promise.variant for promise in spec.runs) or _("none")
    raise BreaklabError(
        _("{bug_id} has no variant {variant!r}").format(bug_id=spec.bug_id, variant=variant),
        hint=_("its variants: {known}").format(known=known),
    )


def _run(request: RunRequest, warm: WarmParent, printer: LivePrinter) -> RunReport:
    from breaklab.ranks.launch import run_lab

    return run_lab(
        warm,
        request.lab,
        args=request.args,
        num_ranks=request.num_ranks,
        hang_timeout_s=request.hang_timeout_s,
        on_line=printer,
    )


def _judge(
    opened: OpenProject,
    request: RunRequest,
    report: RunReport,
    warm: WarmParent,
    screen: Screen,
) -> Judged:
    """Judge a run; compare with the pristine lab only when it ended by itself and a break is in."""
    from breaklab.prove.reference import ReferenceKey, References
    from breaklab.ranks.outcome import judge

    ended = report.stall is None and all(end.exit_code == 0 for end in report.ends)
    reference = None
    if ended and opened.active and request.lab.metrics and not report.interrupted:
        overlay = {opened.active.file: opened.active.pristine}
        references = References(opened.project, request.lab, overlay)
        reference = references.get(
            ReferenceKey(request.args, request.num_ranks),
            warm,
            on_start=lambda: screen.line(_("comparing with a healthy run ..."), "quiet", err=True),
        )
    return judge(report, request.lab.metrics, reference)


def _record(
    opened: OpenProject,
    request: RunRequest,
    judged: Judged,
    report: RunReport,
    diagnose: bool,
) -> None:
    from breaklab.tree.events import append_event

    if request.spec is None:
        return
    data: dict[str, Any] = {
        "variant": request.variant,
        "outcome": judged.outcome.value,
        "duration_s": round(report.duration_s, 3),
        "diagnose": diagnose,
    }
    append_event(opened.project, "run", request.spec.bug_id, **data)
