"""What the spec of 35-01 says in words is measured here, on real ranks."""

from __future__ import annotations

import re
from pathlib import Path

import black
import numpy as np
import pytest

from breaklab.inject.edit import inject
from breaklab.prove.scratch import scratch_copy
from breaklab.ranks.jobs import RunJob
from breaklab.ranks.launch import warm_parent
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project, lab_of, source_file

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def case():
    project = find_project(HERE)
    spec = load_catalogue(project).find("35-01")
    return project, lab_of(project, spec), spec


def healthy_shards(global_batch, world_size):
    return np.array_split(np.arange(global_batch), world_size)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_shortening_the_list_of_shards_changes_nothing_for_rank_zero(world_size):
    # The break as it was first published: `shards = shards[:-1]` on rank 0.
    shards = healthy_shards(64, world_size)
    assert np.array_equal(shards[:-1][0], shards[0])


def test_the_break_takes_one_sample_from_rank_zero_alone(case):
    _, lab, spec = case
    file = source_file(lab, spec)
    module = {"__name__": "broken_dataloader", "__file__": str(file)}
    exec(compile(inject(file.read_bytes(), spec.inject).source, file, "exec"), module)
    assert [len(module["shard_indices"](64, 2, rank)) for rank in range(2)] == [31, 32]


def test_silent_variant_is_as_far_off_as_the_lesson_says(case, tmp_path):
    project, lab, spec = case
    saved = {}
    with warm_parent(lab) as warm:
        for name in ("pristine", "broken"):
            folder = tmp_path / name
            folder.mkdir()
            with scratch_copy(project, lab) as scratch:
                file = source_file(scratch.lab, spec)
                if name == "broken":
                    file.write_bytes(inject(file.read_bytes(), spec.inject).source)
                script, args = str(HERE / "silent_figure.py"), (str(folder),)
                job = RunJob(scratch.lab.root, scratch.lab.source, script=script, args=args)
                report = warm.run_ranks(job)
            assert [end.exit_code for end in report.ends] == [0, 0], report.ends
            saved[name] = [np.load(folder / f"{n}.npy") for n in ("gradient", "parameters")]
    off = [
        100 * np.linalg.norm(broken - pristine) / np.linalg.norm(pristine)
        for pristine, broken in zip(saved["pristine"], saved["broken"], strict=True)
    ]
    told = [float(figure) for figure in re.findall(r"([\d.]+) %", spec.lesson.get("en"))]
    assert off == pytest.approx(told, rel=0.05)
    told_es = re.findall(r"([\d,]+) %", spec.lesson.get("es"))
    assert [float(figure.replace(",", ".")) for figure in told_es] == told


def reordered(text):
    """Move the function with the site to the end of the file."""
    function = re.search(r"def shard_indices.*?\n\n\n", text, re.S)[0]
    return text.replace(function, "") + "\n\n" + function.rstrip() + "\n"


def commented(text):
    return re.sub(r"^( +)(shards? = .*)$", r"\1# a comment\n\1\2  # and another", text, flags=re.M)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: black.format_str(text, mode=black.Mode(line_length=60)),
        lambda text: black.format_str(text, mode=black.Mode(line_length=120)),
        lambda text: black.format_str(text, mode=black.Mode(string_normalization=False)),
        commented,
        reordered,
        lambda text: text.replace('"', "'") if '"""' not in text else text.replace('"""', "'''"),
        lambda text: text.replace("shard = shards[rank]", "shard = (shards[(rank)])"),
    ],
    ids=["black-60", "black-120", "black", "comments", "reordered", "quotes", "parentheses"],
)
def test_the_site_is_found_in_a_source_that_was_only_reformatted(case, change):
    _, lab, spec = case
    source = change(source_file(lab, spec).read_text())
    broken = inject(source.encode(), spec.inject).source.decode()
    added = [line.strip() for line in broken.splitlines() if line not in source.splitlines()]
    assert added == ["if rank == 0:", "shard = shard[:-1]"]
