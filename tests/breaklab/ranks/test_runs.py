"""Ranks of small scripts, really started: what they see, what they print, how they end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from breaklab.errors import RunError
from breaklab.ranks.ends import first_failure
from breaklab.ranks.jobs import Line, RunEvent, RunJob, RunReport, TestJob
from breaklab.ranks.warm import WarmParent

MakeJob = Callable[..., RunJob]


def texts(report: RunReport, rank: int | None = None) -> list[str]:
    return [line.text for line in report.lines if rank is None or line.rank == rank]


def test_each_rank_knows_its_place_its_arguments_and_its_folder(
    warm: WarmParent, job: MakeJob, tmp_path: Path
) -> None:
    report = warm.run_ranks(
        job(
            """
            import os, sys
            names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MINE")
            print(*(os.environ[name] for name in names), sys.argv[1:], os.getcwd(), __name__)
            """,
            num_ranks=3,
            args=("--a", "b c"),
            env={"MINE": "yes"},
        )
    )
    assert [end.exit_code for end in report.ends] == [0, 0, 0]
    for rank in range(3):
        expected = f"{rank} {rank} 3 3 127.0.0.1 yes ['--a', 'b c'] {tmp_path} __main__"
        assert texts(report, rank) == [expected]


def test_a_module_runs_from_the_source_even_if_stale_bytecode_lies_beside_it(
    warm: WarmParent, tmp_path: Path
) -> None:
    package = tmp_path / "source" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    module = package / "__main__.py"
    value = package / "value.py"
    module.write_text("from pack.value import x; print(x)")
    job = RunJob(tmp_path, tmp_path / "source", module="pack", num_ranks=1)
    value.write_text("x = 111")
    before = value.stat()
    import py_compile

    py_compile.compile(str(value))
    value.write_text("x = 222")
    os.utime(value, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert texts(warm.run_ranks(job)) == ["222"]


def test_ranks_meet_over_gloo_without_a_fixed_port(warm_torch: WarmParent, job: MakeJob) -> None:
    report = warm_torch.run_ranks(
        job(
            """
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            mine = torch.full((5,), float(dist.get_rank() + 1))
            dist.all_reduce(mine)
            print(dist.is_torchelastic_launched(), mine.tolist())
            dist.destroy_process_group()
            """,
            num_ranks=3,
        )
    )
    assert texts(report) == ["True [6.0, 6.0, 6.0, 6.0, 6.0]"] * 3
    assert [end.exit_code for end in report.ends] == [0, 0, 0]


@pytest.mark.slow
def test_ten_runs_at_once_do_not_disturb_each_other(warm_torch: WarmParent, job: MakeJob) -> None:
    def run(number: int) -> RunReport:
        shared = job(
            """
            import sys, torch, torch.distributed as dist
            dist.init_process_group("gloo")
            value = torch.tensor([float(sys.argv[1])])
            for _ in range(20):
                total = value.clone()
                dist.all_reduce(total)
            print(int(total))
            dist.destroy_process_group()
            """
        )
        return warm_torch.run_ranks(
            RunJob(shared.cwd, shared.source, script=shared.script, args=(str(number),))
        )

    with ThreadPoolExecutor(10) as pool:
        reports = list(pool.map(run, range(10)))
    assert [texts(report) for report in reports] == [[str(2 * n)] * 2 for n in range(10)]


@pytest.mark.parametrize(
    ("code", "exit_code", "error"),
    [
        ("raise SystemExit", 0, ""),
        ("import sys; sys.exit(3)", 3, "exited with code 3"),
        ("import sys; sys.exit('no data')", 1, "no data"),
        ("raise ValueError('my own\\nreason')", 1, "ValueError: my own"),
        ("import os; os._exit(7)", 7, "exited with code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11, "SIGSEGV"),
        ("def f(:", 1, "SyntaxError: invalid syntax"),
        ("import no_such_module", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_rank_ends_with_its_own_code_and_last_word(
    warm: WarmParent, job: MakeJob, code: str, exit_code: int, error: str
) -> None:
    end = warm.run_ranks(job(code, num_ranks=1)).ends[0]
    assert end.exit_code == exit_code
    assert error in end.error


def test_a_traceback_begins_in_the_script(warm: WarmParent, job: MakeJob) -> None:
    report = warm.run_ranks(job("def f():\n    1 / 0\nf()", num_ranks=1))
    frames = [line.split('"')[1] for line in texts(report) if line.startswith("  File")]
    assert [Path(frame).name for frame in frames] == ["script.py", "script.py"]
    assert report.ends[0].traceback.splitlines() == texts(report)


def test_an_entrypoint_that_does_not_exist_is_named(warm: WarmParent, tmp_path: Path) -> None:
    module = warm.run_ranks(RunJob(tmp_path, tmp_path, module="nowhere.train", num_ranks=1))
    assert "nowhere" in module.ends[0].error
    script = warm.run_ranks(RunJob(tmp_path, tmp_path, script="nowhere.py", num_ranks=1))
    assert "nowhere.py" in script.ends[0].error


def test_threads_and_exit_handlers_finish_before_a_rank_ends(
    warm: WarmParent, job: MakeJob
) -> None:
    report = warm.run_ranks(
        job(
            """
            import atexit, threading
            gate = threading.Event()
            threading.Thread(target=lambda: (gate.wait(), print("thread"))).start()
            atexit.register(print, "handler")
            print("main", end="")
            gate.set()
            """,
            num_ranks=1,
        )
    )
    assert "".join(texts(report)).replace("thread", "", 1) == "mainhandler"
    assert report.ends[0].exit_code == 0


def test_a_rank_that_failed_first_is_told_from_one_that_lost_its_peer(
    warm_torch: WarmParent, job: MakeJob
) -> None:
    report = warm_torch.run_ranks(
        job(
            """
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            dist.barrier()
            if dist.get_rank() == 1:
                raise ValueError("a reason of its own")
            dist.all_reduce(torch.ones(3))
            """
        )
    )
    first = first_failure(report.ends)
    assert first is not None
    assert (first.rank, first.error) == (1, "ValueError: a reason of its own")
    assert report.ends[0].exit_code == 1
    assert report.stall is None


def test_the_abort_of_gloo_is_said_in_a_sentence(warm_torch: WarmParent, job: MakeJob) -> None:
    report = warm_torch.run_ranks(
        job(
            """
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            dist.all_reduce(torch.ones(4 if dist.get_rank() == 0 else 4000))
            """
        )
    )
    first = first_failure(report.ends)
    assert first is not None
    assert first.exit_code == -signal.SIGABRT
    assert "tensors of different sizes" in first.error


def test_silence_is_a_timed_stall(warm: WarmParent, job: MakeJob) -> None:
    report = warm.run_ranks(
        job(
            "import signal; print('waiting', end='', flush=True); signal.pause()",
            hang_timeout_s=0.5,
        )
    )
    assert report.stall is not None
    assert report.stall.kind == "timed"
    assert report.stall.seconds >= 0.5
    assert [end.exit_code for end in report.ends] == [None, None]
    assert texts(report) == ["waiting", "waiting"]  # also without a line's end


def test_one_rank_that_prints_keeps_the_silent_ones_from_being_a_stall(
    warm: WarmParent, job: MakeJob
) -> None:
    report = warm.run_ranks(
        job(
            """
            import os, time
            end = time.monotonic() + 1.5
            while os.environ["RANK"] == "1" and time.monotonic() < end:
                print("step"); time.sleep(0.05)
            if os.environ["RANK"] == "0":
                time.sleep(1.5)
            """,
            hang_timeout_s=0.75,
        )
    )
    assert report.stall is None
    assert [end.exit_code for end in report.ends] == [0, 0]


def test_the_limit_on_total_time_strikes_a_run_that_prints_for_ever(
    warm: WarmParent, job: MakeJob
) -> None:
    report = warm.run_ranks(
        job("import itertools\nfor n in itertools.count(): print(n)", total_timeout_s=0.5)
    )
    assert report.over_time
    assert report.stall is None
    assert report.lines_left_out > 0


def test_the_others_are_ended_soon_after_one_rank_failed(
    warm: WarmParent, job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("breaklab.ranks.watch.PEER_GRACE_S", 0.3)
    report = warm.run_ranks(
        job("import os, signal\nif os.environ['RANK'] == '0': raise OSError(5)\nsignal.pause()")
    )
    assert [end.exit_code for end in report.ends] == [1, None]
    assert report.stall is None
    assert report.duration_s < 20


def test_lines_arrive_live_and_whole(warm: WarmParent, job: MakeJob) -> None:
    seen: list[Line] = []
    arrived = threading.Event()

    def on_line(line: Line) -> None:
        seen.append(line)
        arrived.set()

    code = "import sys; print('one'); print('two', file=sys.stderr); input_ = sys.stdin.read()"
    report = warm.run_ranks(job(code, num_ranks=1), on_line)
    assert arrived.is_set()
    assert sorted(line.text for line in seen) == ["one", "two"]
    assert tuple(seen) == report.lines


def test_a_line_is_seen_while_the_ranks_still_run(
    warm: WarmParent, job: MakeJob, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def on_line(line: Line) -> None:
        if line.text == "waiting":
            gate.write_text("go")  # the rank only goes on when its line was seen

    code = "print('waiting'); print(open('gate').read())"
    report = warm.run_ranks(job(code, num_ranks=1), on_line)
    assert texts(report) == ["waiting", "go"]


def test_huge_lines_binary_and_endless_output_stay_bounded(warm: WarmParent, job: MakeJob) -> None:
    report = warm.run_ranks(
        job(
            r"""
            import os, sys
            sys.stdout.write("x" * 10_000_000 + "\n")
            os.write(1, b"nul\0 \xff\xfe esc\x1b[2J\n")
            os.write(1, b"10%\r20%\r\n")
            for number in range(100_000):
                os.write(1, b"%d\n" % number)
            print("last")
            """,
            num_ranks=1,
        )
    )
    lines = texts(report)
    assert lines[0].startswith("xxx")
    assert "more bytes" in lines[0]
    assert len(lines[0]) < 20_000
    assert lines[1] == "nul\0 \ufffd\ufffd esc\x1b[2J"
    assert lines[2:5] == ["10%", "20%", "0"]
    assert lines[-1] == "last"
    assert sum(map(len, lines)) < 3_000_000
    assert len(lines) + report.lines_left_out == 100_005


def test_a_callback_that_raises_ends_the_ranks(
    warm: WarmParent, job: MakeJob, tmp_path: Path
) -> None:
    pids: list[int] = []

    def on_event(event: RunEvent) -> None:
        pids.extend(event.pids)

    def on_line(_line: Line) -> None:
        if pids:  # a line may overtake the news of who has started
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        warm.run_ranks(job("while True: print('x')"), on_line, on_event)
    from tests.breaklab.ranks.conftest import is_alive, wait_until

    wait_until(lambda: pids and not any(map(is_alive, pids)))


def test_the_last_step_is_the_highest_that_any_rank_printed(warm: WarmParent, job: MakeJob) -> None:
    report = warm.run_ranks(
        job(
            "import os\nfor s in range(int(os.environ['RANK']) + 3): print(f'step {s}')",
            step_line=r"step (?P<step>\d+)",
        )
    )
    assert report.last_step == 3


def test_numbers_are_read_and_a_torn_line_is_left_out(
    warm: WarmParent, job: MakeJob, tmp_path: Path
) -> None:
    report = warm.run_ranks(
        job(
            r"""
            import os
            with open(f"rank{os.environ['RANK']}.jsonl", "w") as file:
                file.write('{"step": 0, "x": 1.5}\n[1]\n\xff\n{"step": 1, "x"')
            """,
            metrics_dir=tmp_path,
        )
    )
    assert report.metrics == {0: ({"step": 0, "x": 1.5},), 1: ({"step": 0, "x": 1.5},)}


def test_a_number_of_ranks_that_no_machine_can_run_is_refused(
    warm: WarmParent, job: MakeJob
) -> None:
    with pytest.raises(RunError, match="0 ranks"):
        warm.run_ranks(job("", num_ranks=0))
    with pytest.raises(RunError, match="1000 ranks"):
        warm.run_ranks(job("", num_ranks=1000))


def test_numpy_draws_differ_between_ranks_that_set_no_seed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import numpy; print(numpy.random.rand())")
    with WarmParent("", ("numpy",)) as parent:
        report = parent.run_ranks(RunJob(tmp_path, tmp_path, script="script.py", num_ranks=2))
    first, second = texts(report)
    assert first != second


def test_folders_with_odd_names_are_no_problem(warm: WarmParent, tmp_path: Path) -> None:
    folder = tmp_path / "a b\n'é\"$x"
    (folder / "tests").mkdir(parents=True)
    (folder / "thing.py").write_text("x = 1")
    (folder / "tests" / "test_x.py").write_text("import thing\ndef test_x(): assert thing.x")
    (folder / "script.py").write_text("import thing; print(thing.x)")
    report = warm.run_ranks(RunJob(folder, folder, script="script.py"))
    assert texts(report) == ["1", "1"]
    suite = warm.run_tests(TestJob(folder, folder, ("tests",), 60.0))
    assert suite.green
    assert suite.results[0].nodeid == "tests/test_x.py::test_x"


def test_events_tell_who_started_and_who_ended(warm: WarmParent, job: MakeJob) -> None:
    events: list[RunEvent] = []
    code = "import os; raise SystemExit(int(os.environ['RANK']))"
    warm.run_ranks(job(code), None, events.append)
    assert events[0].kind == "started"
    assert len(events[0].pids) == 2
    assert {(event.rank, event.exit_code) for event in events if event.kind == "ended"} == {
        (0, 0),
        (1, 1),
    }


def test_a_caller_that_is_slow_to_print_does_not_make_a_stall(
    warm: WarmParent, job: MakeJob
) -> None:
    def slow(line: Line) -> None:
        if line.text == "first":
            time.sleep(1.0)

    code = "import time\nprint('first')\ntime.sleep(0.3)\nprint('second')"
    report = warm.run_ranks(job(code, num_ranks=1, hang_timeout_s=0.7), slow)
    assert report.stall is None


def test_a_run_takes_no_longer_than_its_ranks(warm: WarmParent, job: MakeJob) -> None:
    started = time.monotonic()
    report = warm.run_ranks(job("import time; time.sleep(0.2)"))
    assert 0.2 <= report.duration_s <= time.monotonic() - started
