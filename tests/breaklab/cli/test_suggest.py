"""suggest: from a lab to what its tests notice and what they don't, and to a spec."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breaklab.spec.breaks import load_spec

Breaklab = Callable[..., Any]
MEAN = "tests/test_shards.py::test_mean_of_shards_is_mean_of_all"
ONCE = "tests/test_shards.py::test_every_number_is_seen_once"
# Ways to break the tiny lab: numbers that are left out, and a branch that no test gets to.
DATA = ("--file", "data.py", "--operator", "no-stride", "--operator", "off-by-one")
TRAIN = ("--file", "train.py", "--operator", "drop-collective")


def test_list_shows_candidates_and_runs_nothing(breaklab: Breaklab) -> None:
    lines = breaklab("suggest", "--list", *DATA).out.splitlines()
    assert lines[0].split() == ["KEY", "PLACE", "OPERATOR", "CHANGE"]
    assert lines[-1] == "3 candidates"
    assert "src/tiny/data.py:9  no-stride   leave the stride `world_size` out" in lines[3]
    answer = breaklab("suggest", "--list", "--json", *DATA).json
    assert [row["fate"] for row in answer["candidates"]] == [None] * 3
    assert answer["groups"] == []


def test_what_the_same_tests_catch_is_grouped_and_the_holes_come_last(breaklab: Breaklab) -> None:
    both = ("--operator", "no-stride", "--operator", "drop-collective")
    out = breaklab("suggest", *both).out
    lines = out.splitlines()
    assert any(
        line.endswith("src/tiny/data.py:9  leave the stride `world_size` out") for line in lines
    )
    group, hole = out.index(f"\n{ONCE}\n"), out.index("No test gets to these lines")
    assert 0 < group < hole
    assert "    -            threading.Event().wait()\n    +            pass\n" in out[hole:]
    assert lines[-1] == "2 candidates: 1 not reached, 1 caught"


def test_json_holds_rows_groups_and_counts(breaklab: Breaklab, tiny_project: Path) -> None:
    tests = tiny_project / "tests/test_shards.py"
    tests.write_text(tests.read_text().replace("== list(range(NUM_NUMBERS))", ""))
    answer = breaklab("suggest", "--json", "--first-red", *DATA).json
    fates = {row["what"]: row["fate"] for row in answer["candidates"]}
    assert fates["one less than `NUM_NUMBERS`"] == "survived"
    assert answer["counts"] == {"survived": 2, "caught": 1}
    assert answer["interrupted"] is False
    (caught,) = [group for group in answer["groups"] if group["fate"] == "caught"]
    assert caught["red"] == ["tests/test_shards.py::test_ranks_own_equally_many"]
    assert set(answer["candidates"][0]) == {
        *("key", "file", "line", "function", "operator", "what", "fate", "red", "seconds", "diff")
    }


def test_what_a_record_has_is_not_run_again(breaklab: Breaklab, tmp_path: Path) -> None:
    record = tmp_path / "tried.jsonl"
    first = breaklab("suggest", "--json", "--record", str(record), *DATA).json
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    for entry in entries:
        entry["row"]["what"] = "from the record"
    record.write_text("\n".join(map(json.dumps, entries)))
    again = breaklab("suggest", "--json", "--record", str(record), *DATA).json
    assert {row["what"] for row in again["candidates"]} == {"from the record"}
    assert again["counts"] == first["counts"]


def test_a_picked_candidate_becomes_a_spec(breaklab: Breaklab, tiny_project: Path) -> None:
    listed = breaklab("suggest", "--list", "--json", "--operator", "no-stride").json
    (row,) = listed["candidates"]
    before = (tiny_project / "lab/src/tiny/data.py").read_bytes()
    out = breaklab("suggest", row["key"], "--write", "35-60").out
    spec = load_spec(tiny_project / "breaks/35-60.yaml")
    assert (spec.slug, spec.inject.file) == ("no-stride", "src/tiny/data.py")
    assert ONCE in spec.red
    assert [run.outcome.value for run in spec.runs] == ["wrong"]
    assert "breaklab verify 35-60" in out
    assert (tiny_project / "lab/src/tiny/data.py").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--write", "35-60"), "--write needs the key of one candidate"),
        (("--operator", "no-strides"), "did you mean no-stride"),
        (("--lab", "other"), "no lab"),
    ],
)
def test_a_slip_is_answered_with_what_to_do(
    breaklab: Breaklab, args: tuple[str, ...], message: str
) -> None:
    assert message in breaklab("suggest", *args, code=2).err


@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal as a terminal does")
def test_ctrl_c_prints_what_was_found_and_leaves_nothing(tiny_project: Path) -> None:
    tests = tiny_project / "tests/test_shards.py"
    waits = "\n\ndef test_last():\n    if shard(0, 1)[0] == 1:\n        Event().wait()\n"
    tests.write_text(f"from threading import Event\n{tests.read_text()}{waits}")
    command = [sys.executable, "-m", "breaklab", "suggest", "--jobs", "1", *DATA, *TRAIN]
    with subprocess.Popen(
        command, cwd=tiny_project, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        first = run.stdout.readline()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert first.split()[1] in ("caught", "not")
    assert "Interrupted: " in out
    assert "Traceback" not in err
    assert not (tiny_project / ".breaklab").exists()
