"""Says how a rank ended, in a sentence, from its exit code and what it printed to stderr."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from breaklab.i18n import _
from breaklab.ranks.jobs import RankEnd

_TRACEBACK = "Traceback (most recent call last):"
_TORCH_PREFIX = re.compile(r"^\[rank\d+\]: ?")  # torch's excepthook puts it before each line
_PEER_NOISE = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Connection refused"
    r"|Socket closed|recvVector failed|failed to recv, got 0 bytes",
    re.IGNORECASE,
)
_SIZE_CLASH = re.compile(
    r"op\.preamble\.length <= op\.nbytes\W+(?P<received>\d+)\s+vs\s+(?P<expected>\d+)"
)


def explain_end(
    rank: int, exit_code: int | None, seconds: float, stderr_lines: Sequence[str]
) -> RankEnd:
    """Return how ``rank`` ended; ``error`` is its own last word, ``traceback`` what led there.

    Args:
        rank: which rank.
        exit_code: negative for a signal, None when it was stopped by us.
        seconds: from the start of the run to its end.
        stderr_lines: the last lines that it printed to stderr.
    """
    if exit_code == 0:
        return RankEnd(rank, exit_code, seconds)
    stderr_lines = [_TORCH_PREFIX.sub("", line) for line in stderr_lines]
    traceback = _last_traceback(stderr_lines)
    error = _exception_line(traceback)
    if exit_code is not None and exit_code < 0:
        error = _explain_signal(-exit_code, stderr_lines)
    elif exit_code is not None and not error:
        last = next((line.strip() for line in reversed(stderr_lines) if line.strip()), "")
        error = last or _("exited with code {code}").format(code=exit_code)
    return RankEnd(rank, exit_code, seconds, error, "\n".join(traceback))


def is_peer_noise(error: str) -> bool:
    """Whether ``error`` only says that another rank went away."""
    return bool(_PEER_NOISE.search(error))


def first_failure(ends: Sequence[RankEnd]) -> RankEnd | None:
    """Return the rank that failed first for a reason of its own; None when none failed.

    Ranks that merely lost their peer come last, however early they were.
    """
    failed = [end for end in ends if end.exit_code]
    return min(failed, key=lambda end: (is_peer_noise(end.error), end.seconds), default=None)


def _last_traceback(lines: Sequence[str]) -> list[str]:
    """Return the last traceback with its exception; of a chain, the one that ended the rank."""
    starts = [number for number, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if not starts:
        return []
    body = list(lines[starts[-1] :])
    for number, line in enumerate(body[1:], start=1):
        if line and not line.startswith(" "):
            return body[: number + 1]
    return body


def _exception_line(traceback: Sequence[str]) -> str:
    if not traceback or traceback[-1].startswith(" "):
        return ""
    return traceback[-1].strip()


def _explain_signal(number: int, stderr_lines: Sequence[str]) -> str:
    clash = _SIZE_CLASH.search("\n".join(stderr_lines))
    if clash is not None:
        return _(
            "gloo aborted: a peer sent {received} bytes where {expected} were expected, so the "
            "ranks called the collective with tensors of different sizes or types"
        ).format(**clash.groupdict())
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    return _("killed by signal {name}").format(name=name)
