"""The clean process that starts ranks where pytest itself can't be forked.

It imports torch once, computes nothing, and forks one supervisor for each call, so a session pays
for the import once and not once for each rank. It ends when the socket to pytest closes.

The protocol: pytest sends one byte with the file descriptor of a call's control socket; the
supervisor reads the pickled job from that one, everything else is as in a direct fork.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import socket
import subprocess
import sys
import warnings

from breaklab.ranks.harness_rank import Call, leave, take_frames
from breaklab.ranks.harness_supervisor import TeamJob, supervise
from breaklab.ranks.process import adopt_orphans, kill_descendants


def import_before_fork() -> None:
    """Import what every rank would import otherwise; imports only, no kernel and no thread.

    The first optimizer of a process imports torch._dynamo: a second for each rank if not here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own imports must not fail a strict project
        import torch
        import torch._dynamo
        import torch.distributed  # noqa: F401

        with contextlib.suppress(ImportError):
            importlib.import_module("pytest")  # nearly every module with tests does


def start_host() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a clean host; return its process and the socket to it."""
    ours, theirs = socket.socketpair()
    env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "breaklab.ranks.harness_host", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=env,
            start_new_session=True,  # Ctrl-C is for pytest, which then closes the socket
        )
    return process, ours


def main(control_fd: int) -> None:
    """Serve calls until pytest closes the socket."""
    import_before_fork()
    adopt_orphans()
    control = socket.socket(fileno=control_fd)
    while True:
        data, fds, _flags, _address = socket.recv_fds(control, 1, 1)
        if not data:
            return
        channel = socket.socket(fileno=fds[0])
        host = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            control.close()
            _serve(channel, host)
        channel.close()
        # One call at a time; a supervisor ends soon after its caller, whatever happens.
        os.waitpid(pid, 0)
        end_orphans()


def end_orphans() -> None:
    """End and reap what a supervisor left, which it only does when it was killed."""
    kill_descendants(os.getpid())
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(channel: socket.socket, host: int) -> None:
    """Be the supervisor of one call."""
    buffer = bytearray()
    while not (frames := take_frames(buffer)):
        data = channel.recv(1 << 16)
        if not data:
            leave(1)
        buffer += data
    job, call = pickle.loads(frames[0][1])
    assert isinstance(job, TeamJob)
    assert isinstance(call, Call)
    os.environ.clear()
    os.environ.update(call.env)
    os.chdir(call.cwd)
    supervise(channel, job, call, parent=host)


if __name__ == "__main__":
    main(int(sys.argv[1]))
