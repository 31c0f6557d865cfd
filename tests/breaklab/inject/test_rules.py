"""The hard rules that need no run, each on a break that keeps it and one that does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breaklab.inject.edit import inject
from breaklab.inject.forbidden import new_forbidden_uses
from breaklab.inject.rules import static_findings
from breaklab.model import Action, BreakSpec, Injection, Text

SOURCE = b'''\
import os
from subprocess import run as start
from pathlib import Path

import numpy as np
import torch


def shard(numbers, rank, world_size, path):
    """Return what a rank owns."""
    with open(path) as file:
        file.read()
    torch.save({"numbers": numbers, "rank": rank}, path)
    first = numbers[0]
    owned_numbers = numbers[rank::world_size]
    return owned_numbers
'''


def both(text):
    return Text({"en": text, "es": text})


def spec_of(code, action=Action.INSERT_AFTER, find="owned_numbers = $X", **changes):
    spec = BreakSpec(
        path=Path("breaks/35-01.yaml"),
        bug_id="35-01",
        slug="short",
        family="sharding",
        concept=both("a concept"),
        symptom=both("a symptom"),
        hidden_cause=both("a cause"),
        hints=(both("look at the data"), both("count what each rank has")),
        lesson=both("a lesson"),
        sources=(),
        inject=Injection(file="a.py", inside="shard", find=find, action=action, code=code),
        fix_diff="",
        red=(),
        runs=(),
    )
    return replace(spec, **changes)


def rules_of(spec):
    broken = inject(SOURCE, spec.inject).source
    return [(f.rule, f.message) for f in static_findings(spec, SOURCE, broken)]


def test_break_of_two_lines_with_one_conditional_keeps_every_rule():
    assert rules_of(spec_of("if rank == 0:\n    owned_numbers = owned_numbers[1:]")) == []


@pytest.mark.parametrize(
    ("action", "find", "code"),
    [
        (Action.DELETE, "owned_numbers = $X", ""),
        (Action.REPLACE_WITH, "numbers[rank::world_size]", "numbers[rank:world_size]"),
        (Action.MOVE_BEFORE, "first = $X", "with open($P) as file:\n    $$$BODY"),
    ],
)
def test_other_actions_keep_every_rule(action, find, code):
    spec = spec_of(code, action, find)
    if action is Action.DELETE:
        spec = replace(spec, inject=replace(spec.inject, find="first = $X"))
    assert rules_of(spec) == []


def test_second_conditional_breaks_rule_one():
    code = "owned_numbers = numbers[1:] if rank else numbers[2:] if path else numbers"
    assert rules_of(spec_of(code)) == [
        ("R1", "the change adds 2 conditionals; at most one is allowed")
    ]


def test_change_in_two_places_breaks_rule_one():
    spec = spec_of("")
    far = SOURCE.replace(b"import os\n", b"import os\n\n").replace(b"[rank::", b"[rank+0::")
    findings = static_findings(spec, SOURCE, far)
    assert [f.message for f in findings] == ["the change is 2 hunks; one bug is one hunk"]


def test_third_line_breaks_rule_two():
    code = "if rank == 0:\n    first = 1\n    owned_numbers = [first]"
    assert rules_of(spec_of(code)) == [("R2", "the fix touches 3 lines; 2 are allowed")]


def test_moved_line_counts_once_and_a_blank_one_not_at_all():
    spec = spec_of("")
    moved = SOURCE.replace(b"    first = numbers[0]\n", b"\n").replace(
        b"    return", b"    first = numbers[0]\n    return"
    )
    changed = moved.replace(b"return owned_numbers", b"return first")
    assert static_findings(spec, SOURCE, changed) == []


FORBIDDEN = [
    "import json",
    "from json import loads",
    "open(path)",
    "open(first)",
    "f = open",
    "os.remove(path)",
    "start(['ls'])",
    "Path(path)",
    "path.write_text('')",
    "path.open('w')",
    "exec('1')",
    "eval(path)",
    "compile(path, '', 'exec')",
    "getattr(torch, path)",
    "globals()['x']",
    "__import__('json')",
    "__builtins__['open']",
    "().__class__.__base__.__subclasses__()",
    "'{0.__class__}'.format(path)",
    "first = b'__class__'",
    "torch.os.system('ls')",
    "torch.load(path)",
    "torch.hub.load(path, first)",
    "np.memmap(path)",
    "first = torch.utils.cpp_extension",
    "first = '/etc/passwd'",
    "first = 'https://example.org'",
    "first = '../../x'",
    "first = f'{open(path)}'",
    "first = f'{path:{eval(path)}}'",
    "first = [open(p) for p in path]",
    "first = lambda: exec(path)",
    "def f(x=open(path)): pass",
    "def f(x: eval('1')): pass",
    "@eval\ndef f(): pass",
    "class A(eval('object')): pass",
    "first = (lambda: 0).__globals__",
    "assert input()",
    "match first:\n    case os.sep: pass",
    "with first as os.x: pass",
]


@pytest.mark.parametrize("code", FORBIDDEN)
def test_new_code_that_reaches_out_breaks_rule_four(code):
    assert [message for rule, message in rules_of(spec_of(code)) if rule == "R4"]


@pytest.mark.parametrize(
    "code",
    [
        "owned_numbers = owned_numbers[:-1]",
        "torch.distributed.all_reduce(owned_numbers, op=torch.distributed.ReduceOp.SUM)",
        "owned_numbers.load_state_dict(first.state_dict())",
        "print(f'[rank={rank}] {first}', flush=True)",
        "code = signal = 1",
        "super().__init__()",
        "first = 'a/b ... c'",
        "torch.manual_seed(rank); np.random.seed(rank)",
    ],
)
def test_what_training_code_does_keeps_rule_four(code):
    assert [message for rule, message in rules_of(spec_of(code)) if rule == "R4"] == []


def test_what_the_source_did_already_is_no_new_use_unless_it_has_other_arguments():
    assert new_forbidden_uses(SOURCE, SOURCE.replace(b"file.read()", b"file.read(1)")) == []
    assert new_forbidden_uses(SOURCE, SOURCE.replace(b', "rank": rank', b"")) == []
    assert new_forbidden_uses(SOURCE, SOURCE.replace(b"open(path)", b"open(rank)")) == ["open"]


def test_names_of_the_new_code_are_in_the_message():
    assert rules_of(spec_of("os.remove(open)")) == [
        ("R4", "the new code uses open"),
        ("R4", "the new code uses os"),
    ]


BREAK = "if rank == 0:\n    owned_numbers = owned_numbers[1:]"


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        (("print owned_numbers",), "hint 1 (en) names owned_numbers, which the fix changes"),
        (("ok", "look: if rank == 0:"), "hint 2 (en) holds a changed line"),
        (
            ("see issue #3: write  owned_numbers\n=  owned_numbers[1:]",),
            "hint 1 (en) holds a changed line",
        ),
    ],
)
def test_hint_that_gives_the_fix_away_breaks_rule_seven(hints, message):
    spec = spec_of(BREAK, hints=tuple(both(hint) for hint in hints))
    assert message in [text for rule, text in rules_of(spec) if rule == "R7"]


def test_names_are_no_secret_in_later_hints_or_when_the_symptom_has_them():
    later = spec_of(BREAK, hints=(both("look"), both("print owned_numbers")))
    assert rules_of(later) == []
    told = spec_of(BREAK, hints=(both("Owned_Numbers?"),), symptom=both("owned_numbers is short"))
    assert rules_of(told) == []


def test_text_that_lacks_a_language_breaks_rule_eight():
    spec = spec_of(BREAK, lesson=Text({"en": "x"}), hints=(Text({"es": "x"}),))
    assert rules_of(spec) == [
        ("R8", "lesson has no text in es"),
        ("R8", "hint 1 has no text in en"),
    ]


def test_finding_stands_at_the_hint_it_is_about():
    lines = {"hints[1].es": 30, "hints[1].en": 28, "hints": 20}
    spec = spec_of(BREAK, hints=(both("x"), both("if rank == 0:")), lines=lines)
    broken = inject(SOURCE, spec.inject).source
    findings = static_findings(spec, SOURCE, broken)
    assert [f.location.line for f in findings] == [28, 30]
