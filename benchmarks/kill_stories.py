"""Learners' stories with SIGKILL at random moments: is a byte lost, is anything left behind?

Each story applies, edits, runs, asks, reverts at random, on a copy of a tiny project; about half of
its commands are killed. After each command: the source is as it was, pristine, broken, or merged;
what the learner wrote is in the tree, in a saved copy or in the record; saved copies never change;
the next command leaves nothing half done. At the end revert ends the break, and no process and no
temporary file is left.

    python benchmarks/kill_stories.py --stories 1000 [--seed 7]             the workspace itself
    python benchmarks/kill_stories.py --stories 100 --level cli [--seed 7]  the command line

A failing story prints its number; `--only NUMBER` with the same seed tells it again (the moment of
a kill is random, but what happens between is the same). `--sabotage` makes revert save nothing, to
show that a loss would be noticed. Exit code 1 when a story failed.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import filelock  # noqa: F401 - else each fork would import it anew
from story_commands import CommandLines, Ended, Workspaces
from story_world import World

from breaklab.spec.project import find_project, load_labs
from breaklab.tree import workspace

PROJECT = Path(__file__).resolve().parents[1] / "tests/breaklab/fixtures/tiny_project"
NUM_COMMANDS = 8  # of a story, besides edits and the reverts at its end
GOOD_EXITS = {0, 1, 2, 3, 4, 5}


@dataclass
class Figures:
    """What all stories came to."""

    commands: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    edits: int = 0
    interrupted: int = 0  # kills that left something for the next command to finish or undo
    failed: list[int] = field(default_factory=list)


def tell(number: int, rng: random.Random, level: str, figures: Figures) -> list[str]:
    """Tell one story; return what went wrong, with the story so far."""
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        root = Path(folder).resolve() / "project"
        shutil.copytree(PROJECT, root, ignore=shutil.ignore_patterns("__pycache__"))
        project = find_project(root)
        (lab,) = load_labs(project)
        source = lab.source / "tiny" / "data.py"
        world = World(root, source)
        commands = CommandLines() if level == "cli" else Workspaces(project, lab, source)
        log: list[str] = []
        problems = _story(world, commands, rng, log, figures)
        problems += [f"process {pid} lives on" for pid in commands.survivors()]
        temporary = Path(folder) / "tmp"
        left = sorted(temporary.glob("breaklab*")) if temporary.exists() else []
        problems += [f"temporary {path.name} is left" for path in left]
        return [*log, *(f"story {number}: {problem}" for problem in problems)] if problems else []


def _story(
    world: World,
    commands: CommandLines | Workspaces,
    rng: random.Random,
    log: list[str],
    figures: Figures,
) -> list[str]:
    for _ in range(NUM_COMMANDS):
        if rng.random() < 0.6:
            log.append(f"  edit: {world.edit(rng)}")
            figures.edits += 1
        kill = rng if rng.random() < 0.5 else None
        problems = _step(world, commands, commands.next(rng), kill, log, figures)
        if problems:
            return problems
    for args in commands.finish():
        problems = _step(world, commands, args, None, log, figures)
        if problems or world.look().active is None:
            return problems
    return ["no revert ended the break"]


def _step(
    world: World,
    commands: CommandLines | Workspaces,
    args: list[str],
    kill: random.Random | None,
    log: list[str],
    figures: Figures,
) -> list[str]:
    before = world.look()
    ended = commands.run(args, world, kill)
    figures.commands += 1
    log.append(
        f"  {' '.join(args)} -> {ended.exit_code}{' killed: ' * bool(ended.killed)}{ended.killed}"
    )
    if ended.killed:
        figures.kills[ended.killed] += 1
        figures.interrupted += bool(world.left_over())
    problems = _check_exit(ended)
    # A killed command may leave things half done, and so may one that reads nothing of the state.
    return problems + world.check_step(before, recovered=not ended.killed)


def _check_exit(ended: Ended) -> list[str]:
    if re.search("^Traceback", ended.output, re.MULTILINE):  # a rank's has a prefix
        return [f"a traceback:\n{ended.output}"]
    if not ended.killed and ended.exit_code not in GOOD_EXITS:
        return [f"exit code {ended.exit_code}:\n{ended.output}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--stories", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--level", choices=["workspace", "cli"], default="workspace")
    parser.add_argument("--only", type=int, default=None, help="tell only the story of this number")
    parser.add_argument("--sabotage", action="store_true", help="make revert save nothing")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    if options.sabotage:
        workspace.save_copy = lambda project, *_args: project.state_dir / "saved" / "nothing"
    figures = Figures()
    numbers = range(options.stories) if options.only is None else [options.only]
    for number in numbers:
        problems = tell(number, random.Random(f"{seed}/{number}"), options.level, figures)
        if problems:
            figures.failed.append(number)
            print("\n".join(problems), flush=True)
    kills = ", ".join(f"{name} {count}" for name, count in sorted(figures.kills.items()))
    print(
        f"{len(numbers)} stories, {figures.commands} commands, {figures.edits} edits, "
        f"{figures.kills.total()} kills ({kills}), {figures.interrupted} left something half done, "
        f"{len(figures.failed)} stories failed"
    )
    return 1 if figures.failed else 0


if __name__ == "__main__":
    sys.exit(main())
