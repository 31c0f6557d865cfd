"""How a rank ended, read from its exit code and what it printed to stderr."""

from __future__ import annotations

import pytest

from breaklab.ranks.ends import explain_end, first_failure, is_peer_noise
from breaklab.ranks.jobs import RankEnd

CHAINED = """\
noise before
Traceback (most recent call last):
  File "a.py", line 1, in f
    int("x")
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    raise RuntimeError("second")
  File "b.py", line 9, in g
RuntimeError: second
with another line
noise after""".splitlines()

GLOO_ABORT = """\
terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at /p/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. \
400 vs 16. Received data size doesn't match expected size.""".splitlines()


def test_the_last_of_chained_exceptions_ended_the_rank() -> None:
    end = explain_end(0, 1, 2.0, CHAINED)
    assert end.error == "RuntimeError: second"
    assert end.traceback.splitlines()[0] == "Traceback (most recent call last):"
    assert end.traceback.splitlines()[-1] == "RuntimeError: second"
    assert "int(" not in end.traceback


def test_the_prefix_of_torch_is_removed() -> None:
    prefixed = [f"[rank3]: {line}" for line in CHAINED]
    assert explain_end(3, 1, 2.0, prefixed) == explain_end(3, 1, 2.0, CHAINED)


def test_a_traceback_that_breaks_off_has_no_error_line() -> None:
    end = explain_end(0, None, 2.0, CHAINED[:4])
    assert end.error == ""
    assert end.traceback.endswith('int("x")')


def test_a_healthy_end_has_no_error_whatever_was_printed() -> None:
    assert explain_end(0, 0, 2.0, CHAINED) == RankEnd(0, 0, 2.0)


def test_without_a_traceback_the_last_line_is_the_error() -> None:
    assert explain_end(0, 2, 1.0, ["usage: x", "x: error: no such file", "  "]).error == (
        "x: error: no such file"
    )
    assert explain_end(0, 2, 1.0, []).error == "exited with code 2"


def test_gloo_s_abort_becomes_a_sentence() -> None:
    error = explain_end(0, -6, 1.0, GLOO_ABORT).error
    assert error.startswith("gloo aborted: a peer sent 400 bytes where 16 were expected")


def test_other_signals_are_named() -> None:
    assert explain_end(0, -9, 1.0, []).error == "killed by signal SIGKILL"
    assert explain_end(0, -6, 1.0, ["x"]).error == "killed by signal SIGABRT"
    assert explain_end(0, -64, 1.0, []).error in {
        "killed by signal 64",
        "killed by signal SIGRTMAX",
    }


@pytest.mark.parametrize(
    ("error", "noise"),
    [
        ("RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:5", True),
        ("RuntimeError: [pair.cc:537] Read error [::1]:7: Connection reset by peer.", True),
        ("RuntimeError: size mismatch", False),
        ("", False),
    ],
)
def test_losing_a_peer_is_told_from_a_reason_of_its_own(error: str, noise: bool) -> None:
    assert is_peer_noise(error) is noise


def test_the_first_failure_is_the_earliest_with_a_reason_of_its_own() -> None:
    peer = RankEnd(0, 1, 0.1, "RuntimeError: Connection closed by peer")
    late, early = RankEnd(1, 1, 0.9, "ValueError: x"), RankEnd(2, -6, 0.5, "gloo aborted")
    assert first_failure([peer, late, early, RankEnd(3, 0, 0.0), RankEnd(4, None, 9.0)]) is early
    assert first_failure([peer, RankEnd(3, 0, 0.0)]) is peer
    assert first_failure([RankEnd(3, 0, 0.0), RankEnd(4, None, 9.0)]) is None
