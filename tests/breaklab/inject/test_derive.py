"""From an edit to the pattern that makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from breaklab.errors import SiteError
from breaklab.inject.derive import derive
from breaklab.inject.edit import inject
from breaklab.model import Action
from breaklab.spec.breaks import load_spec
from breaklab.spec.project import find_project, lab_among, load_labs, source_file

REPO = Path(__file__).parents[3]

SOURCE = """\
import torch


class Trainer:
  def step(self, batch):
    for micro in batch:
      loss = self.model(micro)
      loss.backward()
    grads = self.sync(mean=True)
    self.clip(grads)
    self.optimizer.step()
    self.log(loss)
    return loss

  def sync(self, mean):
    self.log("sync")
    return all_reduce(self.flat, op=SUM) / self.world_size
"""

CHANGES = {  # name: (old, new, inside, find, action, code)
    "argument": ("mean=True", "mean=False", "Trainer.step", "True", "replace_with", "False"),
    "operator": (
        "/ self.world_size",
        "* self.world_size",
        "Trainer.sync",
        "all_reduce(self.flat, op=SUM) / self.world_size",
        "replace_with",
        "all_reduce(self.flat, op=SUM) * self.world_size",
    ),
    "call taken away": (
        "all_reduce(self.flat, op=SUM)",
        "self.flat",
        "Trainer.sync",
        "all_reduce(self.flat, op=SUM)",
        "replace_with",
        "self.flat",
    ),
    "statement removed": (
        "    self.clip(grads)\n",
        "",
        "Trainer.step",
        "self.clip(grads)",
        "delete",
        "",
    ),
    "statements added with a comment": (
        "    self.clip(grads)\n",
        "    self.clip(grads)\n    # only once\n    if self.rank == 0:\n      grads = None  # x\n",
        "Trainer.step",
        "self.clip(grads)",
        "insert_after",
        "# only once\nif self.rank == 0:\n    grads = None  # x",
    ),
    "first statement added": (
        "    for micro in batch:\n",
        "    x = 1\n    for micro in batch:\n",
        "Trainer.step",
        "for micro in batch:\n    loss = self.model(micro)\n    loss.backward()",
        "insert_before",
        "x = 1",
    ),
    "moved down": (
        "    self.clip(grads)\n    self.optimizer.step()\n",
        "    self.optimizer.step()\n    self.clip(grads)\n",
        "Trainer.step",
        "self.optimizer.step()",
        "move_after",
        "grads = self.sync(mean=True)",
    ),
    "guarded": (
        "    self.clip(grads)\n",
        "    if self.rank == 0:\n      self.clip(grads)\n",
        "Trainer.step",
        "self.clip(grads)",
        "replace_with",
        "if self.rank == 0:\n    self.clip(grads)",
    ),
    "parameter": (
        "def sync(self, mean)",
        "def sync(self, mean=True)",
        "Trainer",
        "def sync(self, mean):\n    $$$BODY",
        "replace_with",
        "def sync(self, mean=True):\n    $$$BODY",
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_edit_becomes_the_smallest_pattern(change):
    old, new, inside, find, action, code = change
    assert SOURCE.count(old) == 1
    broken = SOURCE.replace(old, new).encode()
    derived = derive(SOURCE.encode(), broken, "a.py")
    found = derived.injection
    assert (found.inside, found.find, found.action, found.code) == (
        inside,
        find,
        Action(action),
        code,
    )
    assert derived.exact
    assert inject(SOURCE.encode(), found).source == broken


def test_statement_moved_out_of_a_loop_stays_a_move():
    moved = SOURCE.replace("      loss.backward()\n", "").replace(
        "    grads =", "    loss.backward()\n    grads ="
    )
    found = derive(SOURCE.encode(), moved.encode(), "a.py").injection
    assert (found.inside, found.find, found.action) == (
        "Trainer.step",
        "loss.backward()",
        Action.MOVE_BEFORE,
    )
    assert found.code == "grads = self.sync(mean=True)"


def test_statement_that_stands_twice_is_told_apart_by_its_neighbour():
    source = "def f():\n    a()\n    x()\n    b()\n    x()\n"
    broken = "def f():\n    a()\n    x()\n    b()\n    y()\n"
    found = derive(source.encode(), broken.encode(), "a.py").injection
    assert (found.find, found.code) == ("b()\nx()", "b()\ny()")


def test_change_of_layout_beside_the_code_gives_the_same_program_only():
    broken = SOURCE.replace("mean=True", "mean=False").replace("import torch\n", "import  torch\n")
    derived = derive(SOURCE.encode(), broken.encode(), "a.py")
    assert not derived.exact
    assert derived.injection.find == "True"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (SOURCE, "the change of a.py changes no code, only its layout"),
        (SOURCE.replace("\n\n\n", "\n\n"), "the change of a.py changes no code, only its layout"),
        (
            SOURCE.replace("mean=True", "mean=False").replace("op=SUM", "op=MAX"),
            "no pattern was found for the change of a.py",
        ),
        (SOURCE + "x = (\n", "a.py is not valid Python: line 18"),
    ],
)
def test_edit_that_is_no_single_change_is_told(broken, message):
    with pytest.raises(SiteError) as caught:
        derive(SOURCE.encode(), broken.encode(), "a.py")
    assert message in caught.value.message


SPECS = sorted(REPO.glob("breaks/**/*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_pattern_of_every_break_is_found_again_from_its_change(path):
    labs = load_labs(find_project(REPO))
    spec = load_spec(path)
    pristine = source_file(lab_among(labs, spec), spec).read_bytes()
    broken = inject(pristine, spec.inject).source
    derived = derive(pristine, broken, spec.inject.file)
    assert derived.exact
    assert inject(pristine, derived.injection).source == broken
