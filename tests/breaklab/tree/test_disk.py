"""Disks that are full, read-only or forbidden, and Ctrl-C: one clear error, nothing half done."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from breaklab.errors import TreeError
from breaklab.tree.events import append_event, read_events
from breaklab.tree.workspace import RevertHow, Workspace, read_active

MY_FIX = (b"shard[:-1]", b"shard[:]")


def _act(learner, command):
    if command == "apply":
        learner.apply()
    else:
        learner.revert(RevertHow(command))


def _prepare(learner, command):
    """Bring the learner to where ``command`` makes sense; return the source's bytes there."""
    if command != "apply":
        learner.apply()
    if command in ("keep", "discard"):
        learner.edit(*MY_FIX)
    return learner.source.read_bytes()


class Disk:
    """A disk that fails at the nth call of one kind."""

    def __init__(self, monkeypatch, call, code, fail_at):
        self.calls = 0
        real = getattr(os, call)

        def failing(*args, **kwargs):
            self.calls += 1
            if self.calls - 1 == fail_at:
                raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        monkeypatch.setattr(os, call, failing)


@pytest.mark.parametrize("command", ["apply", "merge", "keep", "discard"])
@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("write", errno.ENOSPC, "the disk is full"),
        ("write", errno.EDQUOT, "the disk is full"),
        ("fsync", errno.EIO, "could not be written"),
        ("fchmod", errno.EPERM, "no permission"),
        ("open", errno.EROFS, "read-only file system"),
        ("open", errno.EACCES, "no permission"),
    ],
)
def test_whichever_call_fails_the_error_is_one_line_and_nothing_is_half_done(
    learner, new_learner, monkeypatch, command, call, code, words
):
    failures = 0
    for fail_at in range(40):
        learner = new_learner(learner.project.root / str(fail_at))
        before = _prepare(learner, command)
        active_before = read_active(learner.project)
        error = None
        with monkeypatch.context() as patch:
            disk = Disk(patch, call, code, fail_at)
            try:
                _act(learner, command)
            except TreeError as caught:
                error = caught
        if error:
            failures += 1
            assert "\n" not in error.message
            assert words in error.message
            assert learner.source.read_bytes() == before
            assert read_active(learner.project) == active_before
        elif disk.calls <= fail_at:
            break  # the command has no more such calls
        assert learner.left_over() == []
        if active_before is None and read_active(learner.project) is None:
            learner.apply()  # what failed once works once the disk does
        assert learner.source.read_bytes() in (learner.pristine, learner.broken, before)
    else:
        pytest.fail("the walk never came to its end")
    assert failures > 0


@pytest.mark.parametrize("command", ["apply", "merge", "keep", "discard"])
def test_ctrl_c_at_any_step_leaves_the_tree_before_or_after_the_command(
    learner, new_learner, monkeypatch, command
):
    steps: list[str] = []
    outcomes = set()
    for strike_at in range(60):
        learner = new_learner(learner.project.root / str(strike_at))
        before = _prepare(learner, command)
        steps.clear()

        def strike(name, strike_at=strike_at):
            steps.append(name)
            if len(steps) - 1 == strike_at:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("breaklab.tree.atomic.on_step", strike)
            try:
                _act(learner, command)
                break
            except KeyboardInterrupt:
                pass
        assert learner.left_over() == []
        source = learner.source.read_bytes()
        active = read_active(learner.project)
        outcomes.add((source == before, active is not None))
        assert source in (before, learner.pristine, learner.broken)
        # A break is on record exactly when its bytes, or the learner's edits of them, are there.
        assert (active is not None) == (
            source == learner.broken or (source == before != learner.pristine)
        ) or (command == "keep" and source == before)
    else:
        pytest.fail("the walk never came to its end")
    assert len(outcomes) == 2  # before and after, and both were seen


APPLY = """
import os, sys
import filelock
from pathlib import Path
from breaklab.errors import TreeError
from breaklab.model import Entrypoint, Lab, Project, Text
from breaklab.tree.workspace import Workspace
root, size, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
lab_root = root / "labs" / "tiny"
source = lab_root / "src" / "tiny" / "dataloader.py"
entrypoint = Entrypoint("tiny.train")
lab = Lab(lab_root, "tiny", Text({}), lab_root / "src", root / "tests" / "tiny", entrypoint, "")
if limit:
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
elif os.geteuid() == 0:
    os.setgid(65534)  # root may write anywhere; nobody may not
    os.setuid(65534)
try:
    with Workspace.open(Project(root, (lab_root,), ())) as workspace:
        workspace.apply(lab, "35-01", source, b"x" * size)
except TreeError as error:
    print(error.message)
    sys.exit(2)
"""


def _apply_in_a_process(learner, *, size=10, limit=0) -> subprocess.CompletedProcess[str]:
    """Apply a break of ``size`` bytes; with a limit on file sizes, else as nobody."""
    arguments = [str(learner.project.root), str(size), str(limit)]
    return subprocess.run(
        [sys.executable, "-c", APPLY, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("forbidden", ["project", "source folder", "source file"])
def test_a_real_permission_error_is_told_in_one_line(new_learner, forbidden):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        learner = new_learner(Path(folder) / "project")
        for path in sorted(Path(folder).rglob("*")):
            path.chmod(0o777)
        where = {
            "project": learner.project.root,
            "source folder": learner.source.parent,
            "source file": learner.source,
        }[forbidden]
        where.chmod(0o555)
        done = _apply_in_a_process(learner)
        where.chmod(0o755)
        assert done.returncode == 2, done.stderr
        assert "no permission to write" in done.stdout
        assert done.stdout.count("\n") == 1
        assert learner.source.read_bytes() == learner.pristine
        assert read_active(learner.project) is None
        assert learner.left_over() == []


def test_reading_works_where_nothing_may_be_written(learner, monkeypatch):
    learner.apply()

    def forbidden(*_args, **_kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "write", forbidden)
    monkeypatch.setattr(os, "mkdir", forbidden)
    assert read_active(learner.project).bug_id == "35-01"
    assert [event.kind for event in read_events(learner.project)] == ["applied"]
    with pytest.raises(TreeError, match="read-only file system"):
        append_event(learner.project, "hint", "35-01", level=1)


def test_an_event_that_fits_only_in_part_is_told_and_the_next_one_is_whole(learner, monkeypatch):
    real = os.write
    append_event(learner.project, "hint", "35-01", level=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:20]))
        with pytest.raises(TreeError, match="the disk is full"):
            append_event(learner.project, "hint", "35-01", level=2)
    append_event(learner.project, "hint", "35-01", level=3)
    levels = [event.data["level"] for event in read_events(learner.project)]
    assert levels == [1, 3]


def test_a_real_file_size_limit_fails_the_write_and_changes_nothing(learner):
    # The kernel refuses the write in the middle of the file, as it does on a full disk.
    done = _apply_in_a_process(learner, size=400_000, limit=300_000)
    assert done.returncode == 2, done.stderr
    assert "could not be written (File too large)" in done.stdout
    assert learner.source.read_bytes() == learner.pristine
    assert read_active(learner.project) is None
    assert learner.left_over() == []


def test_errors_of_the_block_itself_are_not_taken_for_errors_of_the_tree(learner):
    with pytest.raises(FileNotFoundError), Workspace.open(learner.project):
        (learner.project.root / "no such file").read_bytes()
