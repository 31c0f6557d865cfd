"""What happens inside one rank of ``run_ranks``: from the fork to ``os._exit``."""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import importlib
import importlib.util
import os
import pickle
import random
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn

from breaklab.ranks.harness_report import Failure, is_lost_peer
from breaklab.ranks.lines_run import flush_lines
from breaklab.ranks.records import Page
from breaklab.ranks.records_install import install

# The supervisor asks a rank for its stack with this one; tests are unlikely to use it themselves.
STACK_SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGUSR2)
_HEADER = struct.Struct("<cQ")


@dataclass(frozen=True)
class Call:
    """The function to run; pickled by reference where the ranks are no forks of the caller."""

    payload: bytes  # pickled ``(fn, args, kwargs)``
    module: str  # where fn was defined ...
    file: str  # ... and the file to load it from if it can't be imported by name
    sys_path: tuple[str, ...]
    cwd: str
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self) -> Any:
        """Import the function's module and call the function."""
        sys.path[:] = self.sys_path
        _load(self.module, self.file)
        fn, args, kwargs = pickle.loads(self.payload)
        return fn(*args, **kwargs)


@dataclass(frozen=True)
class RankSetup:
    """What a rank needs to join: its ends of the pipes to the supervisor, and the group."""

    rank: int
    world_size: int
    store_path: str
    group_timeout_s: float
    frames_fd: int = -1  # write: news for the supervisor
    command_fd: int = -1  # read: one byte each to begin and to leave
    output_fd: int = -1  # write: becomes stdout and stderr
    stack_fd: int = -1  # write: faulthandler's stack on STACK_SIGNAL
    page: Page | None = None  # where to record what the rank communicates


def run_rank(setup: RankSetup, call: Callable[[], Any]) -> NoReturn:
    """Join the group, run ``call``, send its value or failure to the supervisor, and leave."""
    exit_code = 1
    try:
        _prepare_process(setup)
        no_records = _join(setup)
        send_frame(setup.frames_fd, b"r", no_records.encode())
        if os.read(setup.command_fd, 1):
            exit_code = _run(setup, call)
            if exit_code == 0:
                os.read(setup.command_fd, 1)  # leaving earlier could cut off a peer's last transfer
    except BaseException as error:
        send_frame(setup.frames_fd, b"f", pickle.dumps(_failure(error, error.__traceback__)))
    finally:
        leave(exit_code)


def send_frame(fd: int, kind: bytes, payload: bytes = b"") -> None:
    """Write one frame: kind, length, payload."""
    data = memoryview(_HEADER.pack(kind, len(payload)) + payload)
    while data:
        data = data[os.write(fd, data) :]


def take_frames(buffer: bytearray) -> list[tuple[bytes, bytes]]:
    """Remove and return the complete frames at the front of ``buffer`` as (kind, payload)."""
    frames = []
    while len(buffer) >= _HEADER.size:
        kind, length = _HEADER.unpack_from(buffer)
        if len(buffer) < _HEADER.size + length:
            break
        frames.append((kind, bytes(buffer[_HEADER.size : _HEADER.size + length])))
        del buffer[: _HEADER.size + length]
    return frames


def leave(exit_code: int) -> NoReturn:
    """End this process without running the exit handlers inherited from the parent."""
    with contextlib.suppress(Exception):
        flush_lines()
    with contextlib.suppress(Exception):
        coverage = sys.modules.get("coverage")
        current = coverage.Coverage.current() if coverage else None
        if current is not None:
            current.stop()
            current.save()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(exit_code)


def _prepare_process(setup: RankSetup) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # An abort in gloo is an expected end here; a core of this size takes seconds to write.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(setup.output_fd, 1)
    os.dup2(setup.output_fd, 2)
    sys.stdout = open(1, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115
    faulthandler.enable(2, all_threads=False)
    faulthandler.register(STACK_SIGNAL, setup.stack_fd, all_threads=False)
    os.environ.update(
        RANK=str(setup.rank),
        WORLD_SIZE=str(setup.world_size),
        LOCAL_RANK=str(setup.rank),
        LOCAL_WORLD_SIZE=str(setup.world_size),
    )
    # All ranks are here, and a host name that does not resolve must not matter.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")


def _join(setup: RankSetup) -> str:
    """Join the group; return why communication can't be recorded, or nothing if it is."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "512")  # the Flight Recorder, where it is off
    no_records = install(setup.page) if setup.page else ""
    # What ran earlier in the parent must not change what a test sees.
    torch.default_generator.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(setup.store_path, setup.world_size),
        rank=setup.rank,
        world_size=setup.world_size,
        timeout=datetime.timedelta(seconds=setup.group_timeout_s),
    )
    return no_records


def _run(setup: RankSetup, call: Callable[[], Any]) -> int:
    """Call the function and send what became of it; return the rank's exit code."""
    try:
        value = call()
    except BaseException as error:
        # Before anything else: the peers notice soon, and this rank has to have been first.
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        if isinstance(call, Call) and trace is not None:
            trace = trace.tb_next
        send_frame(setup.frames_fd, b"f", pickle.dumps(_failure(error, trace)))
        return 1
    try:
        payload = pickle.dumps(value)
    except Exception as error:
        error.add_note(f"rank {setup.rank} returned a {type(value).__name__}, which can't be sent")
        send_frame(setup.frames_fd, b"f", pickle.dumps(_failure(error, None)))
        return 1
    send_frame(setup.frames_fd, b"v", payload)
    return 0


def _failure(error: BaseException, trace: TracebackType | None) -> Failure:
    at = time.monotonic()
    last = "".join(traceback.format_exception_only(error)).strip()
    return Failure(
        error=last.splitlines()[0] if last else type(error).__name__,
        traceback="".join(traceback.format_exception(type(error), error, trace)),
        lost_peer=is_lost_peer(error),
        at=at,
    )


def _load(name: str, file: str) -> None:
    """Import module ``name``, from ``file`` if its name leads nowhere or to another file."""
    # A script runs again here, but not what it does only as a script: multiprocessing's custom.
    run_name = "__mp_main__" if name == "__main__" else name
    with contextlib.suppress(ImportError):
        found = importlib.import_module(run_name)
        if not file or os.path.realpath(found.__file__ or "") == os.path.realpath(file):
            return
    spec = importlib.util.spec_from_file_location(run_name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module {name} and no file {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = sys.modules[run_name] = module
    spec.loader.exec_module(module)
