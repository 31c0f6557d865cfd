"""Lines and lanes on a terminal, when ranks print faster than a terminal can be drawn."""

from __future__ import annotations

import re

import pytest

from breaklab.cli.lanes import LaneDisplay
from breaklab.cli.render import Screen
from breaklab.cli.text import clean
from breaklab.ranks.jobs import Line, RunEvent

STEP_LINE = r"^\[rank=(?P<rank>\d+)\] step (?P<step>\d+)"


def test_every_line_is_shown_once_in_order_and_the_lanes_end_at_the_last_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [
        Line(rank, 0.0, f"[rank={rank}] step {step}") for step in range(400) for rank in (0, 1)
    ]
    with LaneDisplay(Screen(), STEP_LINE, last_step=399) as display:
        display.event(RunEvent("started", pids=(1, 2)))
        for line in lines:
            display.line(line)
    shown = [clean(line).strip() for line in re.split("[\r\n]", capsys.readouterr().out)]
    assert [text for text in shown if text.startswith("[rank=")] == [line.text for line in lines]
    assert [text.split("  ")[1] for text in shown if text.startswith("rank ")][-2:] == [
        "step 399"
    ] * 2
