"""What a user sees, and the exit code, for each way a command can end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from breaklab.cli.boundary import BreaklabGroup, hoist_global_options
from breaklab.errors import BreaklabError, ExitCode


def outcome_of(command: Callable[[], None]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of an app with one command."""
    app = typer.Typer(cls=BreaklabGroup, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.callback()
    def callback() -> None:
        """Make this a group."""

    app.command("go")(command)
    result = CliRunner().invoke(app, ["go"])
    return result.exit_code, result.stdout, result.stderr


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


def test_a_users_mistake_is_one_message_with_a_remedy_and_its_exit_code() -> None:
    error = BreaklabError("no such break", hint="try another", exit_code=ExitCode.NEGATIVE)
    assert outcome_of(raising(error)) == (1, "", "Error: no such break\ntry another\n")


def test_a_users_mistake_exits_with_usage_where_nothing_else_is_said() -> None:
    assert outcome_of(raising(BreaklabError("no")))[0] == 2


def test_interruption_exits_130_without_a_traceback() -> None:
    assert outcome_of(raising(KeyboardInterrupt())) == (130, "", "Interrupted.\n")


def test_an_exit_code_chosen_by_the_command_is_kept() -> None:
    assert outcome_of(raising(typer.Exit(5)))[0] == 5


def test_a_usage_error_is_typers_to_print() -> None:
    code, _out, err = outcome_of(raising(typer.BadParameter("bad value")))
    assert code == 2
    assert "bad value" in err


def test_an_error_of_ours_leaves_a_log_with_the_traceback_and_none_on_screen(
    tiny_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_project)
    code, out, err = outcome_of(raising(ZeroDivisionError("by \x1b[31mzero")))
    assert (code, out) == (70, "")
    assert "Traceback" not in err
    assert "ZeroDivisionError: by zero" in err
    (log,) = (tiny_project / ".breaklab" / "logs").iterdir()
    assert str(log) in err
    text = log.read_text()
    assert "Traceback (most recent call last)" in text
    assert "breaklab 0." in text


def test_without_a_project_the_log_goes_to_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    code, _out, err = outcome_of(raising(ZeroDivisionError()))
    (log,) = (tmp_path / "temporary").iterdir()
    assert code == 70
    assert str(log) in err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["hint", "35-01", "--lang", "es"], ["--lang", "es", "hint", "35-01"]),
        (["list", "--lang=es", "--json"], ["--lang=es", "list", "--json"]),
        (["--no-color", "list"], ["--no-color", "list"]),
        (["run", "--no-color", "--", "--lang", "fr"], ["--no-color", "run", "--", "--lang", "fr"]),
        (["launch", "x.py", "--no-color"], ["launch", "x.py", "--no-color"]),
        (["--lang", "es", "launch", "x.py"], ["--lang", "es", "launch", "x.py"]),
        (["list", "--lang"], ["list", "--lang"]),
        ([], []),
    ],
)
def test_global_options_may_stand_anywhere_before_the_dashes(
    args: list[str], expected: list[str]
) -> None:
    assert hoist_global_options(args) == expected
