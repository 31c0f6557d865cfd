"""What this machine and this folder offer, one check for each thing that breaklab leans on."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import Lab, Project

OK, WARN, FAIL = "ok", "warn", "FAIL"
_MIN_SHM_MIB = 64

# Runs in the lab's interpreter: only that process may import torch.
_PROBE = """
import json, sys
answer = {"python": sys.version.split()[0]}
try:
    import torch, torch.distributed as dist
    answer["torch"] = torch.__version__
    answer["gloo"] = dist.is_available() and dist.is_gloo_available()
    answer["recorder"] = hasattr(torch._C._distributed_c10d, "_dump_fr_trace")
except ImportError as error:
    answer["error"] = str(error)
print(json.dumps(answer))
"""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: its name, how it stands, what was seen, and what to do if need be."""

    name: str
    level: str  # OK, WARN or FAIL
    seen: str
    remedy: str = ""


def examine_machine() -> Iterator[Finding]:
    """Yield what can be said without a project: interpreter, platform, tools, resources."""
    yield _python()
    yield _platform()
    yield _git()
    yield _cores()
    yield _shared_memory()
    yield _loopback()


def examine_torch(python: str) -> Iterator[Finding]:
    """Yield what the interpreter that runs the ranks has to offer; starts it once."""
    minimum = minimum_version("torch")
    answer = _probe(python)
    install = _('install it: pip install "breaklab[lab]"')
    if "torch" not in answer:
        yield Finding("torch", FAIL, str(answer.get("error", _("not installed"))), install)
        return
    version = str(answer["torch"])
    seen = _("{version} (at least {minimum})").format(version=version, minimum=minimum)
    recent = _release(version) >= _release(minimum)
    yield Finding("torch", OK if recent else FAIL, seen, "" if recent else install)
    if answer.get("gloo"):
        yield Finding("gloo", OK, _("available"))
    else:
        remedy = _("install a build of torch with gloo; the CPU wheels have it")
        yield Finding("gloo", FAIL, _("this torch was built without it"), remedy)
    if answer.get("recorder"):
        yield Finding("recorder", OK, _("torch's Flight Recorder is there"))
    else:
        seen = _("no Flight Recorder: a stall is only seen by its timeout, not proven")
        yield Finding("recorder", WARN, seen, _("use a newer torch"))


def examine_project(project: Project, labs: list[Lab]) -> Iterator[Finding]:
    """Yield whether breaklab can read and write what it must in this project."""
    yield Finding("project", OK, str(project.root))
    yield _writable("state", project.state_dir, _("breaklab keeps its records there"))
    yield _lock(project)
    for lab in labs:
        yield _writable(f"lab {lab.name}", lab.source, _("apply and revert write there"))


def minimum_version(package: str) -> str:
    """Return the least version of ``package`` that this breaklab declares, else ``0``."""
    try:
        declared = metadata.requires("breaklab") or []
    except metadata.PackageNotFoundError:
        return "0"
    for requirement in declared:
        if requirement.startswith(f"{package}>="):
            return requirement.removeprefix(f"{package}>=").split(";")[0].split(",")[0].strip()
    return "0"


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of ``2.13.0+cpu`` as ``(2, 13, 0)``, to compare versions by."""
    numbers = version.split("+")[0].split(".")
    return tuple(int(each) for each in numbers if each.isdigit())


def _probe(python: str) -> dict[str, object]:
    command = [python or sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return {
            "error": _("{python} did not answer: {error}").format(python=command[0], error=error)
        }
    return dict(answer)


def _python() -> Finding:
    seen = f"{platform.python_version()} ({sys.executable})"
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("python", OK, seen)
    return Finding("python", WARN, seen, _("breaklab is tested with Python 3.11 to 3.13"))


def _platform() -> Finding:
    release = platform.release()
    if sys.platform == "linux":
        wsl = "microsoft" in release.lower()
        what = _("Linux under WSL") if wsl else _("Linux")
        return Finding(
            "platform", OK, _("{what}: ranks are forked from a warm parent").format(what=what)
        )
    if sys.platform == "darwin":
        seen = _("macOS: ranks are spawned, because fork is unsafe there; starting takes seconds")
        return Finding("platform", WARN, seen, _("for the full speed use Linux"))
    remedy = _("use Linux, macOS, or Windows through WSL")
    return Finding("platform", FAIL, sys.platform, remedy)


def _git() -> Finding:
    git = shutil.which("git")
    if git is None:
        remedy = _("install git; verify applies each fix_diff with it")
        return Finding("git", WARN, _("not found"), remedy)
    done = subprocess.run([git, "--version"], capture_output=True, text=True, check=False)
    return Finding("git", OK, done.stdout.strip() or git)


def _cores() -> Finding:
    affinity = getattr(os, "sched_getaffinity", None)
    num_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    if num_cores > 1:
        return Finding("cores", OK, str(num_cores))
    return Finding("cores", WARN, "1", _("it works on one core, several times slower"))


def _shared_memory() -> Finding:
    shm = Path("/dev/shm")
    if not shm.is_dir():
        return Finding("/dev/shm", OK, _("not on this platform"))
    free_mib = shutil.disk_usage(shm).free // 2**20
    seen = _("{free} MiB free").format(free=free_mib)
    if free_mib >= _MIN_SHM_MIB:
        return Finding("/dev/shm", OK, seen)
    return Finding("/dev/shm", WARN, seen, _("give the container more, as by --shm-size=1g"))


def _loopback() -> Finding:
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
    except OSError as error:
        remedy = _("ranks talk over 127.0.0.1; allow it in this sandbox")
        return Finding("loopback", FAIL, str(error), remedy)
    return Finding("loopback", OK, "127.0.0.1")


def _lock(project: Project) -> Finding:
    """Say whether another breaklab is changing the tree right now."""
    from breaklab.tree.lock import BusyError, tree_lock

    if not project.state_dir.is_dir():
        return Finding("lock", OK, _("free"))
    try:
        with tree_lock(project):
            return Finding("lock", OK, _("free"))
    except BusyError as error:
        return Finding("lock", WARN, error.message, error.hint)
    except OSError as error:
        remedy = _("remove {path} if no breaklab is running").format(
            path=project.state_dir / "lock"
        )
        return Finding("lock", FAIL, error.strerror or str(error), remedy)


def _writable(name: str, folder: Path, purpose: str) -> Finding:
    nearest = next((each for each in (folder, *folder.parents) if each.is_dir()), Path("/"))
    try:
        # By really writing: permission bits say nothing about a read-only mount.
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        remedy = _("make {folder} writable: {purpose}").format(folder=folder, purpose=purpose)
        return Finding(name, FAIL, error.strerror or str(error), remedy)
    return Finding(name, OK, _("{folder} is writable").format(folder=folder))


def project_findings(start: Path) -> Iterator[Finding]:
    """Yield what is to be said of the project around ``start``, also when there is none."""
    from breaklab.spec.catalogue import load_catalogue
    from breaklab.spec.project import find_project, load_labs

    try:
        project = find_project(start)
        labs = load_labs(project)
    except BreaklabError as error:
        yield Finding("project", FAIL, error.message, error.hint)
        return
    yield from examine_project(project, labs)
    catalogue = load_catalogue(project)
    num_specs = len(catalogue.specs)
    if catalogue.broken:
        seen = _("{good} usable, {bad} not").format(good=num_specs, bad=len(catalogue.broken))
        yield Finding("breaks", WARN, seen, _("see why: breaklab lint"))
    else:
        yield Finding("breaks", OK, _("{good} usable").format(good=num_specs))
