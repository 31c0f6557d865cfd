"""A lab that moves and renames things takes its breaks along."""

from __future__ import annotations

import pytest

from breaklab.errors import SiteError
from breaklab.inject.repair import repair
from breaklab.model import Action, Injection

SOURCE = b"""\
class Trainer:
    def step(self, batch):
        shards = split(batch, world_size)
        shard = shards[rank]
        # rank's own
        loss = self.model(shard)
        loss.backward()
        self.sync(loss, "shard")
        return loss

    def other(self, batch):
        loss = self.model(batch)
        return loss
"""
INJECTION = Injection(
    file="a.py",
    inside="Trainer.step",
    find="shard = shards[rank]",
    action=Action.INSERT_AFTER,
    code="if rank == 0:\n    shard = shard[:-1]",
)


def repaired(old, new, injection=INJECTION):
    assert SOURCE.count(old) >= 1
    return repair(injection, SOURCE.replace(old, new))


def test_pattern_that_has_its_site_stays():
    assert repair(INJECTION, SOURCE) == INJECTION
    assert repaired(b"loss", b"total") == INJECTION


def test_renamed_function_is_found():
    assert repaired(b"def step", b"def run_step").inside == "Trainer.run_step"
    assert repaired(b"class Trainer", b"class Loop").inside == "Loop.step"


def test_renamed_name_is_renamed_in_the_pattern_and_in_the_new_code():
    found = repaired(b"shards", b"parts")
    assert (found.find, found.code) == ("shard = parts[rank]", INJECTION.code)
    found = repaired(b"shard ", b"mine ", INJECTION)
    assert (found.find, found.code) == (
        "mine = shards[rank]",
        "if rank == 0:\n    mine = mine[:-1]",
    )


def test_renamed_method_and_attribute_are_found():
    injection = Injection(
        file="a.py",
        inside="Trainer.step",
        find='self.sync($L, "shard")',
        action=Action.REPLACE_WITH,
        code='self.sync($L / 2, "shard")',
    )
    found = repaired(b"self.sync", b"self.reduce", injection)
    assert (found.find, found.code) == (
        'self.reduce($L, "shard")',
        'self.reduce($L / 2, "shard")',
    )


def test_anchor_of_a_move_is_renamed_too():
    injection = Injection(
        file="a.py",
        inside="Trainer.step",
        find="shard = shards[rank]",
        action=Action.MOVE_BEFORE,
        code="shards = split($X, world_size)",
    )
    found = repaired(b"shards", b"parts", injection)
    assert (found.find, found.code) == ("shard = parts[rank]", "parts = split($X, world_size)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"shard = shards[rank]", b"shard = pick(shards, rank)"),
        (b"shard = shards[rank]", b"a = b[c]"),
        (b"        # rank's own\n", b"        batch = shards[rank]\n        loss = shards[rank]\n"),
    ],
)
def test_site_that_is_gone_or_in_doubt_is_left_to_the_author(old, new):
    source = SOURCE.replace(old, new)
    if b"# rank's own" in old:
        source = source.replace(b"        shard = shards[rank]\n", b"")
    with pytest.raises(SiteError, match="`shard = shards\\[rank\\]` has no site"):
        repair(INJECTION, source)


def test_pattern_that_is_no_python_says_so():
    bad = Injection(file="a.py", find="x = (", action=Action.DELETE)
    with pytest.raises(SiteError, match="not valid Python"):
        repair(bad, SOURCE)
