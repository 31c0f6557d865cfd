"""Operators: each finds what people get wrong, nothing else, and changes no byte beside it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from breaklab.inject.operators.candidates import OPERATORS, candidates_in, lab_words
from breaklab.inject.operators.words import Words
from breaklab.inject.size import num_hunks, num_new_conditionals, num_touched_lines

REPO = Path(__file__).resolve().parents[3]
SOURCE = REPO / "labs/phase35/src"

# Operator; the body of `def f(self, x, comm, rank, world_size, state)`; what may become of it.
EXAMPLES = [
    ("drop-collective", "x += 1\ncomm.barrier()", ["x += 1"]),
    ("drop-collective", "dist.all_reduce(x)", ["pass"]),
    ("drop-collective", "y = comm.all_reduce_sum(x)", []),
    ("drop-collective", "comm.barrier(); x += 1", []),
    ("drop-collective", "torch.broadcast_to(x, (2,))", []),
    ("repeat-collective", "comm.barrier()", ["comm.barrier()\ncomm.barrier()"]),
    ("repeat-collective", "x.zero_()", []),
    (
        "move-collective",
        "x += 1\ncomm.barrier()  # all\n\nx += 2",
        ["comm.barrier()  # all\nx += 1\n\nx += 2", "x += 1\nx += 2\n\ncomm.barrier()  # all"],
    ),
    (
        "move-collective",
        "for y in x:\n    comm.broadcast(y)\n    y += 1",
        [
            "for y in x:\n    y += 1\n    comm.broadcast(y)",
            "for y in x:\n    y += 1\ncomm.broadcast(y)",
        ],
    ),
    ("move-collective", '"""Doc."""\ncomm.barrier()\nreturn x', []),
    ("guard-collective", "comm.barrier()", ["if rank == 0:\n    comm.barrier()"]),
    ("guard-collective", "if rank == 0:\n    x += 1", []),
    ("local-value", "y = comm.all_reduce_sum(x * 2)", ["y = (x * 2)"]),
    ("local-value", "return comm.all_gather(x)", ["return [x]"]),
    ("local-value", "h = comm.start_sum(x)\ncomm.all_reduce_sum(x)", []),
    (
        "stale-value",
        "y = comm.all_reduce_mean(x)\nreturn y",
        ["y = comm.all_reduce_mean(x)\nreturn x"],
    ),
    ("stale-value", "x = comm.all_reduce_mean(x)\nreturn x", []),
    (
        "other-reduction",
        "dist.all_reduce(x, op=dist.ReduceOp.SUM)",
        ["dist.all_reduce(x, op=dist.ReduceOp.MAX)"],
    ),
    ("other-reduction", "comm.all_reduce_sum(x)", ["comm.all_reduce_mean(x)"]),
    ("other-reduction", "comm.all_gather(x)", []),
    ("wrong-source", "dist.broadcast(x, src=0)", ["dist.broadcast(x, src=1)"]),
    ("wrong-source", "dist.broadcast(x, src=root)", ["dist.broadcast(x, src=0)"]),
    ("wrong-source", "dist.broadcast(x)", []),
    ("wrong-group", "dist.all_reduce(x, group=self.group)", ["dist.all_reduce(x)"]),
    ("wrong-group", "mean(x, comm)", []),
    ("drop-call", "self.sampler.set_epoch(3)\nx += 1", ["x += 1"]),
    ("drop-call", "with self.model.no_sync():\n    x.backward()", ["if True:\n    x.backward()"]),
    ("drop-call", "comm.barrier()\nprint(x)", []),
    ("move-call", "opt.zero_grad()\nloss.backward()", ["loss.backward()\nopt.zero_grad()"]),
    ("move-call", "opt.zero_grad()\nreturn x", []),
    ("drop-copy", "y = x.clone()", ["y = x"]),
    ("drop-copy", "y = x.to(torch.float64, copy=True)", ["y = x.to(torch.float64)"]),
    ("drop-copy", "y.copy_(x)", []),
    ("drop-divisor", "y = x / world_size", ["y = x"]),
    ("drop-divisor", "y = (x + 1) * world_size / 3", ["y = (x + 1) / 3"]),
    ("drop-divisor", "x /= comm.world_size\nreturn x", ["return x"]),
    ("drop-divisor", "y = x / 2\nz = [None] * world_size", []),
    ("add-divisor", "y = comm.all_reduce_sum(x)", ["y = (comm.all_reduce_sum(x) / world_size)"]),
    ("add-divisor", "dist.all_reduce(x)", ["dist.all_reduce(x)\nx /= world_size"]),
    ("add-divisor", "y = comm.all_reduce_mean(x)", []),
    ("other-divisor", "y = x / num_labels", ["y = x / world_size"]),
    ("other-divisor", "y = x / world_size", ["y = x / (world_size - 1)"]),
    ("other-divisor", "y = x / 2", []),
    ("mean-and-sum", 'y = F.nll_loss(x, reduction="sum")', ['y = F.nll_loss(x, reduction="mean")']),
    ("mean-and-sum", 'y = F.nll_loss(x, reduction="none")', []),
    ("off-by-one", "y = range(len(x))", ["y = range(len(x) - 1)"]),
    (
        "off-by-one",
        "y = x[2 : a if b else c]",
        ["y = x[3 : a if b else c]", "y = x[2 : (a if b else c) - 1]"],
    ),
    ("off-by-one", "y = x < 3", ["y = x <= 3"]),
    ("off-by-one", "y = x == 3\nz = x[0]", []),
    ("no-stride", "y = x[rank::world_size]", ["y = x[rank:]"]),
    ("no-stride", "y = x[rank:9]", []),
    ("drop-one", "y = (x + 1) % 3", ["y = (x) % 3"]),
    ("drop-one", "y = -(-x // 3)", ["y = (x // 3)"]),
    ("drop-one", "y = x + 2", []),
    ("ignore-rank", "y = g(x, rank=comm.rank)", ["y = g(x, rank=0)"]),
    ("ignore-rank", 'if rank == 0:\n    print(f"{rank}")', []),
    ("ignore-world-size", "y = x % dist.get_world_size()", ["y = x % 1"]),
    ("ignore-world-size", "world_size = 3", []),
    (
        "wrong-rank",
        "if rank == 0:\n    x += 1",
        ["if rank >= 0:\n    x += 1", "if rank == 1:\n    x += 1"],
    ),
    ("wrong-rank", "if rank == 2:\n    x += 1", []),
    ("seed-with-rank", "torch.manual_seed(3)", ["torch.manual_seed(3 + rank)"]),
    ("seed-with-rank", "torch.manual_seed(3 + rank)", []),
]
# The same for a whole function, where its name counts.
FUNCTIONS = [
    (
        "skip-saving",
        'def state_dict(self):\n    return {"a": self.a, "b": self.b}\n',
        [
            'def state_dict(self):\n    return {"b": self.b}\n',
            'def state_dict(self):\n    return {"a": self.a}\n',
        ],
    ),
    ("skip-saving", 'def other(self):\n    return {"a": self.a}\n', []),
    (
        "skip-loading",
        'def load(self, state):\n    self.a.copy_(state["a"])\n    b = state["b"]\n    use(b, 1)\n',
        [
            'def load(self, state):\n    b = state["b"]\n    use(b, 1)\n',
            'def load(self, state):\n    self.a.copy_(state["a"])\n    b = state["b"]\n',
        ],
    ),
    ("skip-loading", "def load_data(self):\n    self.read()\n    return self.rows\n", []),
    (
        "skip-one-of-many",
        'def load(self, state):\n    self.a, self.b = state["a"], state["b"]\n',
        [
            'def load(self, state):\n    self.b = state["b"]\n',
            'def load(self, state):\n    self.a = state["a"]\n',
        ],
    ),
    ("skip-one-of-many", 'def load(self, state):\n    self.a = state["a"]\n', []),
]
WORDS = Words(functions=frozenset({"all_reduce_sum", "all_reduce_mean"}))


def function(body: str) -> str:
    head = "def f(self, x, comm, rank, world_size, state):\n"
    return head + textwrap.indent(body, "    ") + "\n"


def made_by(operator: str, source: str) -> list[str]:
    found = candidates_in(source.encode(), "src/m.py", WORDS, [operator])
    return [candidate.broken.decode() for candidate in found]


@pytest.mark.parametrize(
    ("operator", "source", "changes"),
    [(name, function(body), [function(to) for to in changes]) for name, body, changes in EXAMPLES]
    + FUNCTIONS,
)
def test_operator_makes_exactly_its_changes(operator: str, source: str, changes: list[str]) -> None:
    assert sorted(made_by(operator, source)) == sorted(changes)


def test_every_operator_has_an_example_that_changes_and_one_that_does_not() -> None:
    for changes in (True, False):
        shown = {name for name, _source, to in (*EXAMPLES, *FUNCTIONS) if bool(to) is changes}
        assert shown == set(OPERATORS)


@pytest.mark.parametrize(
    ("scope", "rank"),
    [
        ("def f(rank, x):\n    dist.barrier()\n", "rank"),
        ("def f(x):\n    y = x.rank\n    dist.barrier()\n", "x.rank"),
        ("def f(x):\n    r = dist.get_rank()\n    dist.barrier()\n", "dist.get_rank()"),
        ("import torch.distributed as dist\ndef f(x):\n    dist.barrier()\n", "dist.get_rank()"),
        ("class C:\n    def f(self):\n        self.comm.barrier()\n", "self.comm.rank"),
        ("def f(sub_comm):\n    sub_comm.barrier()\n", "sub_comm.rank"),
    ],
)
def test_rank_is_what_is_in_scope(scope: str, rank: str) -> None:
    words = Words(rank_attribute="dist.barrier" not in scope)
    (found,) = candidates_in(scope.encode(), "m.py", words, ["guard-collective"])
    assert f"if {rank} == 0:" in found.broken.decode()


def test_a_guard_needs_a_rank_in_scope() -> None:
    source = b"def f(x):\n    x.barrier()\n"
    assert not list(candidates_in(source, "m.py", Words(), ["guard-collective"]))


def test_what_wraps_a_collective_counts_as_one_and_so_does_what_is_named() -> None:
    wrapper = b"def share(x):\n    dist.broadcast(x, 0)\n\n"
    lab = {"a.py": wrapper + b"def main():\n    share(1)\n    own(2)\n"}
    for named, dropped in ((), {"share(1)"}), (["ow*"], {"share(1)", "own(2)"}):
        words = lab_words(lab, named)
        found = candidates_in(lab["a.py"], "a.py", words, ["drop-collective"])
        assert {c.what for c in found if c.function == "main"} == {f"drop `{x}`" for x in dropped}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_nothing_outside_the_site_changes_by_a_byte(newline: str) -> None:
    text = (
        "\ufeff# ä\n\n\nclass C:\n\tdef f( self,rank ):\n\t\tx  =  1 # one\n\t\tdist.barrier( )\n"
    )
    source = text.replace("\n", newline).encode()
    (guard,) = candidates_in(source, "m.py", WORDS, ["guard-collective"])
    expected = text.replace("\t\tdist", "\t\tif rank == 0:\n\t\t\tdist").replace("\n", newline)
    assert guard.broken == expected.encode()
    assert (guard.line, guard.function) == (7, "C.f")


def test_code_of_the_module_and_defaults_are_left_alone() -> None:
    source = b"N = 3 / num_ranks\n\ndef f(x=range(N), y=rank + 1):\n    return x\n"
    assert not list(candidates_in(source, "m.py", WORDS))


def test_a_change_of_more_than_two_lines_is_none() -> None:
    source = function("x += 1\ndist.all_reduce(\n    x,\n    group=self.group,\n)")
    assert made_by("drop-collective", source) == []


def test_keys_hold_while_other_parts_of_the_file_change() -> None:
    body = "a = 1\nb = 2\nc = 3\ncomm.barrier()\nd = 4\ne = 5\ng = 6"
    source = function(body).encode()
    (before,) = candidates_in(source, "m.py", WORDS, ["drop-collective"])
    (after,) = candidates_in(b"import os\n\n\n" + source, "m.py", WORDS, ["drop-collective"])
    assert before.key == after.key
    assert before.line + 3 == after.line


def test_all_candidates_of_the_lab_compile_and_are_one_small_bug_each() -> None:
    sources = {path.name: path.read_bytes() for path in sorted(SOURCE.rglob("*.py"))}
    words = lab_words(sources)
    keys: set[str] = set()
    operators: set[str] = set()
    for name, source in sources.items():
        for found in candidates_in(source, name, words):
            assert found.key not in keys
            keys.add(found.key)
            operators.add(found.operator)
            ast.parse(found.broken)
            assert num_hunks(source, found.broken) <= 1 + ("move" in found.operator)
            assert num_new_conditionals(source, found.broken) <= 1
            assert num_touched_lines(source, found.broken) <= 2
    assert len(keys) > 500
    assert operators == set(OPERATORS)
