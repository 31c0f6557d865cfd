"""How fast do `hint`, `list` and `status` start, against the floor of what they must import?

The floor is a process that imports typer, rich.console and yaml and prints one line. Floor and
commands take turns, so that a change of the machine's load touches all of them alike.

    python benchmarks/startup.py [--rounds 15] [--project FOLDER] [--limit 1.3]

Exit code 1 when a command's median is more than `limit` times the floor's.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

FLOOR = "import typer, rich.console, yaml; print('one line')"
MAIN = "from breaklab.cli.app import main; main()"
COMMANDS = {
    "hint 35-01": ["hint", "35-01"],
    "list": ["list"],
    "status": ["status"],
    "--version": ["--version"],
}


def seconds(code: str, args: list[str], cwd: Path) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-c", code, *args]
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--project", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--limit", type=float, default=1.3)
    options = parser.parse_args()

    times: dict[str, list[float]] = {"floor": [], **{name: [] for name in COMMANDS}}
    for round_number in range(options.rounds + 1):
        taken = {"floor": seconds(FLOOR, [], options.project)}
        for name, args in COMMANDS.items():
            taken[name] = seconds(MAIN, args, options.project)
        if round_number:  # the first round only warms the file cache and writes bytecode
            for name, value in taken.items():
                times[name].append(value)

    floor = statistics.median(times["floor"])
    worst = 0.0
    print(f"{'what':<12} {'median ms':>9} {'min ms':>7} {'ratio':>6}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:<12} {median * 1e3:9.0f} {min(values) * 1e3:7.0f} {median / floor:6.2f}")
        worst = max(worst, median / floor)
    return int(worst > options.limit)


if __name__ == "__main__":
    sys.exit(main())
