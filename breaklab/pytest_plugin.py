"""pytest's front of the harness: the fixture ``run_ranks``, for tests that need several ranks.

Usable in any project. torch is imported when a test first uses the fixture, not before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from breaklab.i18n import _

_REASON = "breaklab_spawn_reason"
_reasons: pytest.StashKey[set[str]] = pytest.StashKey()


@pytest.fixture
def run_ranks() -> Callable[..., list[Any]]:
    """Run a function on each rank of a fresh gloo group.

    ``run_ranks(fn, world_size=3, timeout_s=30.0, args=(), kwargs=None)`` returns each rank's value;
    see :func:`breaklab.ranks.harness.run_ranks`.
    """
    from breaklab.ranks import harness

    return harness.run_ranks


def _spawn_reason() -> str:
    harness = sys.modules.get("breaklab.ranks.harness")
    return harness.spawn_reason() if harness else ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In an xdist worker: hand the reason for spawning to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_REASON] = _spawn_reason()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the reporting process: take the reason from an xdist worker."""
    reason = getattr(node, "workeroutput", {}).get(_REASON)
    if reason:
        node.config.stash.setdefault(_reasons, set()).add(reason)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say once, and why, if ranks were not forked from pytest."""
    reasons = config.stash.get(_reasons, set()) | {_spawn_reason()}
    for reason in sorted(reasons - {""}):
        terminalreporter.write_line(
            _("run_ranks: ranks were started by spawn, not by fork: {reason}").format(reason=reason)
        )
