"""Which breaks survive what people do to a source: as a codemod, and as a stored patch.

For each break of the catalogue and each change of layout the lab's file is changed, then the break
is put in twice: by its pattern, and by `git apply` of its `fix_diff` the other way round, as if
that patch had been stored. A break survives if the result is the same program as the broken file
changed in the same way, compared as syntax trees.

    python benchmarks/survival.py [--each]     a table; with --each, a line for every failure

Exit code 1 when a codemod does not survive.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from reformat import black_at, reordered, single_quoted, with_comments

from breaklab.errors import SiteError
from breaklab.inject.edit import inject
from breaklab.model import BreakSpec, Project
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, lab_of, source_file

Change = Callable[[str], str]
CHANGES: dict[str, Change] = {
    "none": lambda source: source,
    "black at 60": black_at(60),
    "black at 120": black_at(120),
    "added comments": with_comments,
    "reordered functions": reordered,
    "double to single quotes": single_quoted,
}


def by_codemod(spec: BreakSpec, changed: str, wanted: str) -> str:
    """Return why the break's codemod does not make the wanted program, or ""."""
    try:
        broken = inject(changed.encode(), spec.inject, path=spec.inject.file).source.decode()
    except SiteError as error:
        return error.message
    return "" if same(broken, wanted) else "another program"


def by_patch(spec: BreakSpec, changed: str, wanted: str) -> str:
    """Return why the stored patch does not make the wanted program, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / spec.inject.file
        file.parent.mkdir(parents=True)
        file.write_text(changed)
        done = subprocess.run(
            ["git", "apply", "--reverse", "-"],
            cwd=folder,
            input=spec.fix_diff,
            text=True,
            capture_output=True,
            check=False,
            env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)},
        )
        if done.returncode:
            return done.stderr.strip().partition("\n")[0]
        return "" if same(file.read_text(), wanted) else "another program"


def same(left: str, right: str) -> bool:
    """Whether two sources are the same program."""
    return ast.dump(ast.parse(left)) == ast.dump(ast.parse(right))


def outcomes(project: Project, spec: BreakSpec) -> dict[str, tuple[str, str]]:
    """Return for each change why codemod and patch fail after it, "" where they don't."""
    pristine = source_file(lab_of(project, spec), spec).read_bytes()
    broken = inject(pristine, spec.inject, path=spec.inject.file).source.decode()
    found = {}
    for name, change in CHANGES.items():
        changed, wanted = change(pristine.decode()), change(broken)
        if same(changed, wanted):
            raise AssertionError(f"{spec.bug_id}: {name} hides the break")
        found[name] = by_codemod(spec, changed, wanted), by_patch(spec, changed, wanted)
    return found


def main() -> int:
    """Print the table; 1 when a codemod does not survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", action="store_true", help="a line for every failure")
    options = parser.parse_args()
    project = find_project(Path(__file__))
    specs = load_catalogue(project).specs
    found = {bug_id: outcomes(project, spec) for bug_id, spec in specs.items()}
    print("| change of the lab's source | codemod | stored patch |")
    print("|---|---:|---:|")
    for name in CHANGES:
        codemods = sum(not each[name][0] for each in found.values())
        patches = sum(not each[name][1] for each in found.values())
        print(f"| {name} | {codemods} of {len(specs)} | {patches} of {len(specs)} |")
    lost = False
    for bug_id, each in found.items():
        for name, reasons in each.items():
            lost = lost or bool(reasons[0])
            for kind, reason in zip(("codemod", "patch"), reasons, strict=True):
                if reason and (options.each or kind == "codemod"):
                    print(f"{bug_id}  {name}  {kind}: {reason}")
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
