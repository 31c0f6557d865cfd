"""From a lab to a job: what every rank is started with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.model import Lab
from breaklab.ranks.faults import parse_fault
from breaklab.ranks.jobs import Line, RunEvent, RunJob, RunReport
from breaklab.ranks.warm import WarmParent
from breaklab.spec.lab import ANY_STEP

HANG_TIMEOUT_S = 60.0
_FACTOR = 5.0
_FLOOR_S = 20.0


def lab_job(
    lab: Lab,
    *,
    args: Sequence[str] = (),
    num_ranks: int | None = None,
    hang_timeout_s: float = HANG_TIMEOUT_S,
    total_timeout_s: float | None = None,
    metrics_dir: Path | None = None,
    env: Mapping[str, str] | None = None,
    fault: str = "",
    launcher: str = "fork",
) -> RunJob:
    """Return the job that runs the entrypoint of ``lab`` on every rank.

    Args:
        lab: the lab, or the same lab rooted in a scratch copy.
        args: appended to the entrypoint's own arguments; a later option wins there.
        num_ranks: None for the lab's default.
        hang_timeout_s: silent seconds after which the run counts as stalled.
        total_timeout_s: limit on the whole run; None for none.
        metrics_dir: an empty folder for the ranks' numbers; without one, or where the lab has no
            metrics, none are written.
        env: environment variables for the ranks.
        fault: as in a spec or after ``run --fault``, such as ``stop:rank=2,step=3``.
        launcher: ``fork``, from the warm parent, or ``torchrun``.

    Raises:
        BreaklabError: the fault can't be read, or names a rank that is not there.
    """
    start = lab.entrypoint
    num_ranks = num_ranks or start.num_ranks
    metrics_args: tuple[str, ...] = ()
    if lab.metrics is not None and metrics_dir is not None:
        metrics_args = tuple(arg.replace("{dir}", str(metrics_dir)) for arg in lab.metrics.args)
    return RunJob(
        cwd=lab.root,
        source=lab.source,
        module=start.module,
        script="" if start.module else start.script,
        args=(*start.args, *args, *metrics_args),
        num_ranks=num_ranks,
        hang_timeout_s=hang_timeout_s,
        total_timeout_s=total_timeout_s,
        env=dict(env or {}),
        step_line=lab.step_line,
        metrics_dir=metrics_dir if metrics_args else None,
        faults=(parse_fault(fault, num_ranks),) if fault else (),
        launcher=launcher,
    )


def script_job(
    script: Path,
    *,
    args: Sequence[str] = (),
    num_ranks: int = 2,
    hang_timeout_s: float = HANG_TIMEOUT_S,
    total_timeout_s: float | None = None,
    fault: str = "",
    launcher: str = "fork",
) -> RunJob:
    """Return the job that runs a script of torch.distributed that is no lab, in this folder.

    Every rank sees what torchrun would show it: its environment variables, and the script's folder
    first on ``sys.path``. Lines such as ``step 7`` are taken for steps.

    Raises:
        RunError: there is no such script.
        BreaklabError: the fault can't be read, or names a rank that is not there.
    """
    if not script.is_file():
        raise RunError(_("there is no script {script}").format(script=script))
    path = script.resolve()
    return RunJob(
        cwd=Path.cwd(),
        source=path.parent,
        script=str(path),
        args=tuple(args),
        num_ranks=num_ranks,
        hang_timeout_s=hang_timeout_s,
        total_timeout_s=total_timeout_s,
        step_line=ANY_STEP,
        faults=(parse_fault(fault, num_ranks),) if fault else (),
        launcher=launcher,
    )


def run_lab(
    warm: WarmParent,
    lab: Lab,
    *,
    args: Sequence[str] = (),
    num_ranks: int | None = None,
    hang_timeout_s: float = HANG_TIMEOUT_S,
    total_timeout_s: float | None = None,
    fault: str = "",
    on_line: Callable[[Line], None] | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
) -> RunReport:
    """Run ``lab`` with its numbers in a temporary folder; the report holds them.

    Raises:
        RunError: the ranks could not be started.
    """
    with TemporaryDirectory(dir=warm.folder(), ignore_cleanup_errors=True) as folder:
        job = lab_job(
            lab,
            args=args,
            num_ranks=num_ranks,
            hang_timeout_s=hang_timeout_s,
            total_timeout_s=total_timeout_s,
            fault=fault,
            metrics_dir=Path(folder),
        )
        return warm.run_ranks(job, on_line, on_event)


def warm_parent(lab: Lab) -> WarmParent:
    """Return a warm parent for ``lab``: its interpreter, else ours, and its preload."""
    return WarmParent(lab.python or sys.executable, lab.preload)


def time_limit(healthy_s: float) -> float:
    """Return the limit, in seconds, for a run that takes ``healthy_s`` when nothing is wrong.

    Five times that, so that a busy machine passes, and never under 20 s, because a short run's
    time says little about another's.
    """
    return max(_FLOOR_S, _FACTOR * healthy_s)
