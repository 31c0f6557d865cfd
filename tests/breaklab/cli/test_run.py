"""run on real ranks of a lab that needs no torch: lines, outcomes, exit codes, what comes next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Breaklab = Callable[..., Any]


def events(root: Path, kind: str) -> list[dict[str, Any]]:
    lines = (root / ".breaklab" / "events.jsonl").read_text().splitlines()
    return [each for each in map(json.loads, lines) if each["kind"] == kind]


def test_without_a_break_the_healthy_lab_runs_and_exits_0(breaklab: Breaklab) -> None:
    out = breaklab("run").out
    for rank in (0, 1):
        assert f"[rank={rank}] step 0 loss=5.50\n" in out
        assert f"[rank={rank}] step 1 starting all-reduce ...\n" in out
    assert "The run is healthy." in out
    assert "breaklab list" in out


def test_the_prefix_is_added_only_where_it_is_missing(breaklab: Breaklab) -> None:
    out = breaklab("run").out
    assert "[rank=0] a line without prefix, loss 5.50\n" in out
    assert "[rank=0] [rank=0]" not in out


def test_a_stall_ends_with_exactly_one_stall_line_and_exit_code_3(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    out = breaklab("run", "--hang-timeout", "1", code=3).out
    lines = out.splitlines()
    assert lines.count("[STALL: 1 seconds, no further output]") == 1
    assert lines.index("[STALL: 1 seconds, no further output]") == 4
    assert "The run stalled: no rank makes progress any more." in out
    assert "breaklab diagnose" in out


def test_a_crash_names_the_rank_and_its_error_and_exits_4(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    out = breaklab("run", "--variant", "error", code=4).out
    assert "The run crashed" in out
    assert "RuntimeError: size mismatch" in out.partition("The run crashed")[2]


def test_a_wrong_result_is_found_by_a_healthy_run_which_is_made_only_once(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    first = breaklab("run", "--variant", "silent", code=5)
    assert "The run is wrong" in first.out
    assert "15.2 %" in first.out
    assert first.err == "comparing with a healthy run ...\n"
    again = breaklab("run", "--variant", "silent", code=5)
    assert again.err == ""
    assert "lab tiny, 2 ranks --mode silent" in again.out
    assert len(list((tiny_project / ".breaklab" / "cache").iterdir())) == 1


def test_another_pristine_source_or_other_arguments_need_another_healthy_run(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-02")
    breaklab("run", code=5)
    assert "comparing" in breaklab("run", "--num-ranks", "3", code=5).err
    assert "comparing" in breaklab("run", "--", "--mode", "strict", code=5).err
    breaklab("revert")
    source = tiny_project / "lab" / "src" / "tiny" / "data.py"
    source.write_text(source.read_text() + "# a comment of the learner's\n")
    breaklab("apply", "35-02")
    assert "comparing" in breaklab("run", code=5).err


def test_a_fixed_source_runs_healthy_and_leads_to_check(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    source = tiny_project / "lab" / "src" / "tiny" / "data.py"
    pristine = source.read_bytes()
    breaklab("apply", "35-01")
    source.write_bytes(pristine)
    out = breaklab("run", "--variant", "silent").out
    assert "The run is healthy." in out
    assert "breaklab check" in out


def test_arguments_after_the_dashes_go_to_the_training(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    out = breaklab("run", "--variant", "silent", "--", "--mode", "strict", code=4).out
    assert "size mismatch" in out


def test_the_number_of_ranks_can_be_chosen(breaklab: Breaklab) -> None:
    assert "[rank=2] step 0" in breaklab("run", "--num-ranks", "3").out


def test_a_variant_that_does_not_exist_names_those_that_do(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    assert breaklab("run", "--variant", "loud", code=2).err == (
        "Error: there is no variant 'loud'\nits variants: stall, silent, error\n"
    )


def test_a_variant_without_a_break_is_refused(breaklab: Breaklab) -> None:
    assert "none is applied" in breaklab("run", "--variant", "stall", code=2).err


def test_run_json_has_the_documented_keys_and_the_lines_go_to_standard_error(
    breaklab: Breaklab,
) -> None:
    breaklab("apply", "35-01")
    ran = breaklab("run", "--json", "--hang-timeout", "1", code=3)
    answer = ran.json
    assert set(answer) == {
        *("bug_id", "lab", "variant", "args", "num_ranks", "outcome", "summary", "details"),
        *("exit_code", "interrupted", "duration_s", "last_step", "stall", "ends", "waits"),
    }
    assert (answer["bug_id"], answer["variant"], answer["outcome"]) == ("35-01", "stall", "stall")
    assert (answer["exit_code"], answer["last_step"]) == (3, 1)
    assert answer["stall"]["kind"] == "timed"
    assert [end["rank"] for end in answer["ends"]] == [0, 1]
    assert "[rank=0] step 0 loss=5.50\n" in ran.err
    assert "[STALL: 1 seconds, no further output]\n" in ran.err


def test_runs_are_recorded_with_their_outcome_and_whether_a_diagnosis_was_asked_for(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    breaklab("run", "--variant", "error", code=4)
    breaklab("run", "--hang-timeout", "1", "--diagnose", code=3)
    recorded = [each["data"] for each in events(tiny_project, "run")]
    assert [(each["variant"], each["outcome"], each["diagnosed"]) for each in recorded] == [
        ("error", "crash", False),
        ("stall", "stall", True),
    ]


def test_a_run_over_its_limit_is_stopped_and_said_to_be(breaklab: Breaklab) -> None:
    breaklab("apply", "35-01")
    out = breaklab("run", "--total-timeout", "1", "--hang-timeout", "30", code=5).out
    assert "limit on the total time" in out


def test_a_fault_kills_the_chosen_rank(breaklab: Breaklab) -> None:
    out = breaklab("run", "--fault", "kill:rank=1,step=0", code=4).out
    assert "The run crashed" in out
    assert "rank 1" in out.partition("The run crashed")[2]


@pytest.mark.parametrize("fault", ["kill", "kill:rank=7,step=0", "melt:rank=0,step=1"])
def test_a_fault_that_cannot_be_read_is_a_users_mistake(breaklab: Breaklab, fault: str) -> None:
    assert fault in breaklab("run", "--fault", fault, code=2).err


def test_a_missing_interpreter_is_one_clear_message(breaklab: Breaklab, tiny_project: Path) -> None:
    manifest = tiny_project / "lab" / "lab.yaml"
    manifest.write_text(manifest.read_text() + "python: /no/such/python\n")
    err = breaklab("run", code=2).err
    assert "/no/such/python" in err
    assert "lab.yaml" in err


def test_diagnose_shows_the_last_run_and_is_recorded_as_help(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    breaklab("apply", "35-01")
    breaklab("run", "--hang-timeout", "1", code=3)
    out = breaklab("diagnose").out
    assert "The last run: lab tiny, 2 ranks --mode wait" in out
    assert "The run stalled" in out
    assert breaklab("diagnose", "--json").json["outcome"] == "stall"
    assert len(events(tiny_project, "diagnosed")) == 2


def test_diagnose_of_a_crash_names_the_rank_that_failed_first(breaklab: Breaklab) -> None:
    breaklab("run", "--fault", "kill:rank=1,step=0", code=4)
    assert "rank 1 failed first" in breaklab("diagnose").out


def test_diagnose_without_a_run_says_what_to_do(breaklab: Breaklab) -> None:
    assert breaklab("diagnose", code=2).err == (
        "Error: no run to diagnose yet\nmake one: breaklab run\n"
    )


def test_diagnose_survives_a_kept_run_of_another_form(
    breaklab: Breaklab, tiny_project: Path
) -> None:
    (tiny_project / ".breaklab").mkdir()
    (tiny_project / ".breaklab" / "last-run.json").write_text('{"outcome": "melted"}')
    assert "no run to diagnose yet" in breaklab("diagnose", code=2).err
