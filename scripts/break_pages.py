"""Write the pages about the breaks from their specs; a test checks that they are current.

    python scripts/break_pages.py    # docs/breaks.md, docs/breaks.es.md, docs/instructors.md

The first two tell learners what there is, and spoil nothing; the third tells instructors all.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path

from breaklab.model import BreakSpec, RunPromise
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

_WORDS = {
    "en": {
        "title": "The breaks",
        "intro": "{count} bugs that people met in the wild, each cut to two lines. Nothing here "
        "says where they are: `breaklab apply ID`, and look. Difficulty goes from 1, a first "
        "contact, to 5.",
        "break": "break",
        "difficulty": "difficulty",
        "after": "after",
        "outcome": "what a run shows",
        "symptom": "symptom",
    },
    "es": {
        "title": "Los bugs",
        "intro": "{count} bugs que alguien sufrió de verdad, reducidos a dos líneas cada uno. Aquí "
        "nada dice dónde están: `breaklab apply ID`, y a mirar. La dificultad va de 1, un primer "
        "contacto, a 5.",
        "break": "bug",
        "difficulty": "dificultad",
        "after": "después de",
        "outcome": "qué muestra una ejecución",
        "symptom": "síntoma",
    },
}


def learners_page(specs: list[BreakSpec], lang: str) -> str:
    """Return the page without spoilers."""
    words = _WORDS[lang]
    parts = [f"# {words['title']}\n", words["intro"].format(count=len(specs)) + "\n"]
    for family, members in groupby(sorted(specs, key=_by_family), key=lambda spec: spec.family):
        parts.append(f"## {family}\n")
        heads = ("break", "difficulty", "after", "outcome", "symptom")
        parts.append(_row([words[head] for head in heads]))
        parts.append(_row(["---"] * len(heads)))
        for spec in members:
            outcomes = ", ".join(dict.fromkeys(run.outcome.value for run in spec.runs))
            after = ", ".join(spec.prerequisites)
            symptom = _flat(spec.symptom.get(lang))
            parts.append(_row([spec.bug_id, str(spec.difficulty), after, outcomes, symptom]))
        parts.append("")
    return "\n".join(parts)


def instructors_page(specs: list[BreakSpec]) -> str:
    """Return the page with everything."""
    outcomes = Counter(outcome for spec in specs for outcome in {run.outcome for run in spec.runs})
    counts = ", ".join(f"{name.value}: {number}" for name, number in sorted(outcomes.items()))
    parts = [
        "# The breaks, for instructors\n",
        "**Spoilers.** Everything about each break, from its spec; `breaklab verify` proves it.\n",
        f"{len(specs)} breaks; breaks with a variant of each outcome: {counts}.\n",
    ]
    for spec in specs:
        parts += [
            f"## {spec.bug_id} {spec.slug}\n",
            f"Family {spec.family}, difficulty {spec.difficulty}"
            + (f", after {', '.join(spec.prerequisites)}" if spec.prerequisites else "")
            + f". {_flat(spec.concept.get('en'))}.\n",
            f"**Symptom.** {_flat(spec.symptom.get('en'))}\n",
            f"**Cause.** {_flat(spec.hidden_cause.get('en'))}\n",
            f"**Lesson.** {_flat(spec.lesson.get('en'))}\n",
            "**Runs.** " + "; ".join(_promise(run) for run in spec.runs) + "\n",
            f"**Red.** {len(spec.red)}: " + ", ".join(f"`{_short(node)}`" for node in spec.red),
            "\n**Sources.** " + "; ".join(_flat(source) for source in spec.sources) + "\n",
            f"**Fix.**\n\n```diff\n{spec.fix_diff.rstrip()}\n```\n",
        ]
    return "\n".join(parts)


def _by_family(spec: BreakSpec) -> tuple[str, int, str]:
    return spec.family, spec.difficulty, spec.bug_id


def _flat(text: str) -> str:
    return " ".join(text.split())


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _promise(run: RunPromise) -> str:
    arguments = " ".join(run.args)
    ranks = f" on {run.num_ranks} ranks" if run.num_ranks else ""
    step = f" at step {run.at_step}" if run.at_step is not None else ""
    fault = f", with {run.fault}" if run.fault else ""
    return (
        f"`{run.variant}` ({arguments or 'no arguments'}{ranks}{fault}): {run.outcome.value}{step}"
    )


def _short(node: str) -> str:
    return node.rpartition("/")[2]


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    specs = [spec for _id, spec in sorted(load_catalogue(find_project(ROOT)).specs.items())]
    return {
        DOCS / "breaks.md": learners_page(specs, "en"),
        DOCS / "breaks.es.md": learners_page(specs, "es"),
        DOCS / "instructors.md": instructors_page(specs),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
