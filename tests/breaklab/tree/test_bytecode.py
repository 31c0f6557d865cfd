"""After a change of the source, no interpreter runs what it was before."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import time

import pytest

from breaklab.tree.bytecode import fresh_mtime_ns, remove_bytecode


@pytest.fixture
def values(new_learner, tmp_path):
    """A learner whose break has the same length as the original."""
    return new_learner(tmp_path / "values", b"VALUE = 1\n", b"VALUE = 2\n", name="values.py")


def _run(learner, *options, **env) -> str:
    """Import the source in a process that writes bytecode; return what it sees."""
    done = subprocess.run(
        [sys.executable, *options, "-c", "import values; print(values.VALUE)"],
        cwd=learner.source.parent,
        env={key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        | env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_without_care_python_runs_the_old_code(values):
    # What the other tests guard against is real: the same length in the same second.
    os.utime(values.source, (1_000_000_000, 1_000_000_000))
    assert _run(values) == "1"
    values.source.write_bytes(values.broken)
    os.utime(values.source, (1_000_000_000, 1_000_000_000))
    assert _run(values) == "1"


@pytest.mark.parametrize("options", [(), ("-O",), ("-OO",)])
def test_a_break_of_the_same_length_in_the_same_second_runs_at_once(values, options):
    for _round in range(3):
        assert _run(values, *options) == "1"
        values.apply()
        assert _run(values, *options) == "2"
        values.revert()
    assert _run(values, *options) == "1"


def test_bytecode_in_another_place_is_not_run_either(values, tmp_path):
    prefix = str(tmp_path / "cache")
    assert _run(values, PYTHONPYCACHEPREFIX=prefix) == "1"
    values.apply()
    assert _run(values, PYTHONPYCACHEPREFIX=prefix) == "2"
    values.revert()
    assert _run(values, PYTHONPYCACHEPREFIX=prefix) == "1"


def test_bytecode_that_python_trusts_unchecked_is_removed(values):
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(values.source), doraise=True, invalidation_mode=mode)
    values.apply()
    assert _run(values) == "2"


def test_a_source_from_the_future_still_gets_a_later_second(values):
    future = int(time.time()) + 100_000
    os.utime(values.source, (future, future))
    assert _run(values) == "1"
    values.apply()
    assert values.source.stat().st_mtime_ns // 10**9 > future
    assert _run(values) == "2"


def test_a_clock_that_went_back_does_not_bring_a_cached_second_back(values):
    now = int(time.time())
    os.utime(values.source, (now + 50, now + 50))
    assert _run(values) == "1"  # the cache holds now + 50 ...
    os.utime(values.source, (now - 50, now - 50))  # ... and an editor saved after the clock jumped
    assert fresh_mtime_ns(values.source) // 10**9 > now + 50


def test_bytecode_of_other_modules_stays(values):
    other = values.source.with_name("values.extra.py")
    other.write_bytes(b"")
    cache = values.source.parent / "__pycache__"
    cache.mkdir()
    names = ["values.cpython-311.pyc", "values.cpython-312.opt-1.pyc", "value.cpython-311.pyc"]
    for name in [*names, "values.extra.cpython-311.pyc", "values.txt"]:
        (cache / name).write_bytes(b"")
    remove_bytecode(values.source)
    left = {"value.cpython-311.pyc", "values.extra.cpython-311.pyc", "values.txt"}
    assert {path.name for path in cache.iterdir()} == left
