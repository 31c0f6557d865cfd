"""A catalogue split over machines: the same split everywhere, each part about as long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from breaklab.errors import BreaklabError
from breaklab.i18n import _
from breaklab.model import BreakSpec

_FORM = re.compile(r"(\d{1,4})/(\d{1,4})")
# What a proof is made of, by how long each took in proofs of this catalogue, in about half seconds.
_EACH_PROOF, _EACH_RUN, _EACH_RED_TEST = 4, 6, 1


@dataclass(frozen=True)
class Shard:
    """One of several parts of a catalogue."""

    number: int = 1  # from 1
    of: int = 1


def parse_shard(text: str) -> Shard:
    """Return the shard that ``2/5`` means.

    Raises:
        BreaklabError: it has another form, or there is no such part.
    """
    match = _FORM.fullmatch(text)
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.of:
        raise BreaklabError(
            _("{text} is no shard; write 2/5 for the second of five").format(text=text)
        )
    return shard


def specs_of(shard: Shard, specs: Sequence[BreakSpec]) -> list[BreakSpec]:
    """Return the breaks of one shard, in the order of ``specs``.

    The split depends on nothing but the specs, not even on their order; together the shards hold
    each break once. Long proofs are dealt out first, each to the shard with the least work so far.
    """
    loads = [0] * shard.of
    mine = set()
    for spec in sorted(specs, key=lambda spec: (-_cost(spec), spec.bug_id)):
        index = loads.index(min(loads))
        loads[index] += _cost(spec)
        if index == shard.number - 1:
            mine.add(spec.bug_id)
    return [spec for spec in specs if spec.bug_id in mine]


def _cost(spec: BreakSpec) -> int:
    return _EACH_PROOF + _EACH_RUN * len(spec.runs) + _EACH_RED_TEST * len(spec.red)
