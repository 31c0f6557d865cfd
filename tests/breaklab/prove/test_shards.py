from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from breaklab.errors import BreaklabError
from breaklab.prove.shards import Shard, parse_shard, specs_of
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project


@pytest.fixture(scope="module")
def specs():
    """All breaks of this repository."""
    return list(load_catalogue(find_project(Path(__file__))).specs.values())


@pytest.mark.parametrize("of", [1, 2, 5, 40])
def test_together_the_shards_hold_each_break_once(specs, of):
    parts = [specs_of(Shard(number, of), specs) for number in range(1, of + 1)]
    ids = [spec.bug_id for part in parts for spec in part]
    assert sorted(ids) == sorted(spec.bug_id for spec in specs)


def test_the_split_does_not_depend_on_the_order_of_the_specs(specs):
    shuffled = random.Random(0).sample(specs, len(specs))
    for number in (1, 2, 3):
        shard = Shard(number, 3)
        same = {spec.bug_id for spec in specs_of(shard, shuffled)}
        assert same == {spec.bug_id for spec in specs_of(shard, specs)}


def test_breaks_with_many_runs_are_spread(specs):
    short, long = replace(specs[0], runs=(), red=()), replace(specs[0], runs=specs[0].runs * 4)
    many = [replace(long, bug_id=f"1-{n:02}") for n in range(4)]
    many += [replace(short, bug_id=f"2-{n:02}") for n in range(8)]
    for number in range(1, 5):
        part = specs_of(Shard(number, 4), many)
        assert sum(spec.bug_id.startswith("1-") for spec in part) == 1


@pytest.mark.parametrize("text", ["", "2", "0/5", "6/5", "a/b", "1/0", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_told(text):
    with pytest.raises(BreaklabError, match="is no shard"):
        parse_shard(text)


def test_shard_is_parsed():
    assert parse_shard("2/5") == Shard(2, 5)
