"""The bar of verify: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from breaklab.cli.proof_bar import NoBar, proof_bar
from breaklab.cli.render import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_the_proofs_are_and_what_each_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with proof_bar(Screen(no_color=True), 3, hidden=False) as bar:
        bar.phase("35-01", "test")
        bar.phase("35-02", "run [stall]")
        bar.done("35-01")
        with bar.aside():
            print("35-01  proven")
    assert "1/3" in terminal.getvalue()
    assert "35-02 run [stall]" in terminal.getvalue()
    assert capsys.readouterr().out == "35-01  proven\n"


@pytest.mark.parametrize(("hidden", "term"), [(True, "xterm"), (False, "dumb")])
def test_with_json_or_on_a_dumb_terminal_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, hidden: bool, term: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", term)
    with proof_bar(Screen(), 3, hidden=hidden) as bar:
        assert isinstance(bar, NoBar)
        bar.phase("35-01", "test")
        bar.done("35-01")
    assert terminal.getvalue() == ""


def test_in_a_pipe_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with proof_bar(Screen(), 3, hidden=False) as bar:
        assert isinstance(bar, NoBar)
