"""Environment variables of the processes that breaklab starts: what is removed, what is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from breaklab.ranks.jobs import RunJob

_SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

# What would change a verdict: another user's pytest options, a launcher's ranks around us, or
# interpreter switches such as PYTHONOPTIMIZE, which removes every assert.
_REMOVED_PREFIXES = ("PYTEST_", "TORCHELASTIC_", "MASTER_", "COV_CORE_")
_REMOVED = {
    *("RANK", "LOCAL_RANK", "ROLE_RANK", "GROUP_RANK", "ROLE_NAME"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE", "GROUP_WORLD_SIZE"),
    *("PYTHONOPTIMIZE", "PYTHONINSPECT", "PYTHONDEBUG", "PYTHONVERBOSE", "PYTHONWARNINGS"),
    *("PYTHONDEVMODE", "PYTHONPYCACHEPREFIX", "PYTHONPROFILEIMPORTTIME", "PYTHONSTARTUP"),
}


def host_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a warm parent: ours without what changes verdicts, and ``extra``.

    Numeric libraries get one thread each: several ranks share the machine, and a parent that
    started threads must not fork.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _REMOVED and not name.startswith(_REMOVED_PREFIXES)
    }
    return {**kept, **_SINGLE_THREADED, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def rank_environment(job: RunJob, rank: int, port: int) -> dict[str, str]:
    """Return what torchrun would set for this rank, and loopback for gloo; the job's own wins.

    With TORCHELASTIC_USE_AGENT_STORE every rank, 0 too, is a client of the supervisor's store.
    """
    world_size = str(job.num_ranks)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "ROLE_RANK": str(rank),
        "GROUP_RANK": "0",
        "ROLE_NAME": "default",
        "WORLD_SIZE": world_size,
        "LOCAL_WORLD_SIZE": world_size,
        "ROLE_WORLD_SIZE": world_size,
        "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": "breaklab",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        **common_environment(job),
    }


def common_environment(job: RunJob) -> dict[str, str]:
    """Return what every rank gets, whoever launches it."""
    recorder = {"TORCH_FR_BUFFER_SIZE": "256"} if job.record else {}  # collectives, none without
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {"GLOO_SOCKET_IFNAME": loopback, **recorder, **job.env}
