"""Fuzz what breaklab reads from others, guided by coverage: an answer or an error of ours.

    python benchmarks/fuzz.py                     # every target, 10,000 inputs each
    python benchmarks/fuzz.py spec --runs 50000

Targets: specs, manifests, notes (journals), records of the tree, patterns. Any other exception, an
input that takes over 10 s, or more than 500 MB of memory ends the target with an error, and the
input is kept in --keep. Needs atheris (pip install atheris). Each target runs in its own process,
from the project's own files as seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S, LIMIT_MB = 10, 500
SOURCE = b"""\
import dist


class Trainer:
    def step(self, batch, *rest, scale=2):
        for i in range(3):
            loss = self.model(batch[i : i + 1]).sum() * scale
            loss.backward()
        dist.all_reduce(loss, op="sum", group=self.group)
        return {"loss": loss, **{k: v for k, v in rest}}
"""


def spec(data: bytes, folder: Path) -> None:
    """The bytes are a spec."""
    from breaklab.spec.breaks import load_spec

    (folder / "x.yaml").write_bytes(data)
    load_spec(folder / "x.yaml")


def manifest(data: bytes, folder: Path) -> None:
    """The bytes are a lab.yaml."""
    from breaklab.spec.lab import load_lab

    (folder / "lab.yaml").write_bytes(data)
    load_lab(folder / "lab.yaml")


def notes(data: bytes, folder: Path) -> None:
    """The bytes are a learner's journal."""
    from breaklab.spec.notes import load_notes

    (folder / "breaks.md").write_bytes(data)
    load_notes(folder / "breaks.md")


def record(data: bytes, folder: Path) -> None:
    """The bytes are the record of an applied break."""
    from breaklab.tree.record import read_record

    (folder / "active.json").write_bytes(data)
    read_record(folder / "active.json")


def pattern(data: bytes, folder: Path) -> None:
    """The text is a pattern, an action's number and new code, parted by lines of dashes."""
    from breaklab.inject.edit import inject
    from breaklab.model import Action, Injection

    find, _, rest = data.decode(errors="replace").partition("\n---\n")
    number, _, code = rest.partition("\n---\n")
    actions = list(Action)
    action = actions[len(number) % len(actions)]
    inject(SOURCE, Injection(file="x.py", find=find, action=action, code=code))


def seeds(target: str) -> list[bytes]:
    """The project's own files, and what the fuzzer would be long in finding."""
    specs = sorted((ROOT / "breaks").glob("*.yaml"))[:12]
    if target == "spec":
        return [path.read_bytes() for path in specs] + [b"a: &a [*a, *a]\n", b"!!python/name:os\n"]
    if target == "manifest":
        return [path.read_bytes() for path in (ROOT / "labs").glob("*/lab.yaml")]
    if target == "notes":
        entry = "- bug-id: 35-01\n  concept: a\n  symptom: b: c\n  hidden_cause: d\n  hint_1: e\n"
        return [f"# Breaks\n\n```yaml\n{entry}  fix_diff: |\n    x\n```\n".encode()]
    if target == "record":
        keys = ("bug_id", "lab", "file", "pristine", "broken", "mode", "applied_at")
        value = dict.fromkeys(keys, "644") | {"hidden": False, "solved": False, "tests_digest": {}}
        return [json.dumps(value).encode()]
    return [
        b"loss.backward()\n---\n\n---\nloss.sum().backward()",
        b"$X = self.model($$$A).sum() * scale\n---\n12\n---\n$X = 0",
        b"for $I in range($N):\n    $$$BODY\n---\n1\n---\n$$$BODY",
        b"dist.all_reduce($$$A, op=$O)\n---\n123\n---\n",
    ]


TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    function.__name__: function for function in (spec, manifest, notes, record, pattern)
}


def fuzz(target: str, runs: int, keep: Path) -> None:
    """Fuzz one target in this process; ends it."""
    import atheris

    with atheris.instrument_imports(include=["breaklab", "yaml"]):
        import breaklab.author.import_notes
        import breaklab.inject.edit
        import breaklab.spec.breaks
        import breaklab.spec.lab
        import breaklab.tree.record  # noqa: F401
    from breaklab.errors import BreaklabError

    function = TARGETS[target]
    folder = Path(tempfile.mkdtemp(dir=keep))
    (folder / "src").mkdir()

    def one(data: bytes) -> None:
        with contextlib.suppress(BreaklabError):
            function(data, folder)

    corpus = keep / f"{target}-corpus"
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (corpus / str(number)).write_bytes(seed)
    limits = [f"-timeout={LIMIT_S}", f"-rss_limit_mb={LIMIT_MB}", "-max_len=4096"]
    prefix = f"-artifact_prefix={keep}/{target}-"
    atheris.Setup([sys.argv[0], str(corpus), f"-runs={runs}", *limits, prefix], one)
    atheris.Fuzz()


def main() -> None:
    """Fuzz each target that was asked for, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "breaklab-fuzz")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.here:
        fuzz(options.targets[0], options.runs, options.keep)
    failed = False
    for target in options.targets or TARGETS:
        command = [sys.executable, __file__, target, "--here", f"--runs={options.runs}"]
        done = subprocess.run(
            [*command, f"--keep={options.keep}"],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
        lines = done.stderr.strip().splitlines()
        result = next((line for line in lines if line.startswith("Done ")), "")
        print(f"{target:10} {result or f'FAILED, exit code {done.returncode}'}", flush=True)
        if not result:
            failed = True
            print("\n".join(lines[-40:]))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
