"""Codemods in Python: where they may run, what they may change, and their own examples."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from breaklab.errors import SiteError
from breaklab.inject.codemod import load_codemod, run_codemod
from breaklab.inject.edit import inject
from breaklab.model import Injection
from breaklab.spec.catalogue import load_catalogue
from breaklab.spec.project import find_project

CODEMOD = '''\
import libcst as cst

from breaklab.inject.codemod import Codemod, Example


class SwapFirstTwo(Codemod):
    """Swap the first two statements of every function that has two."""

    EXAMPLES = (
        Example("def f():\\n    a()\\n    b()\\n", "def f():\\n    b()\\n    a()\\n"),
        Example("def f():\\n    a()\\n", None),
        Example("def f():\\n    a()\\n    b()\\ndef g():\\n    a()\\n    b()\\n", None),
    )

    def leave_FunctionDef(self, original_node, updated_node):
        body = list(updated_node.body.body)
        if len(body) < 2:
            return updated_node
        body[:2] = reversed(body[:2])
        block = updated_node.body.with_changes(body=body)
        return self.site(original_node, updated_node.with_changes(body=block))


class Fails(Codemod):
    def leave_Module(self, original_node, updated_node):
        raise ValueError("on purpose")


class Unrelated:
    pass
'''

REPO = Path(__file__).parents[3]


@pytest.fixture
def injection(tmp_path):
    folder = tmp_path / "breaks/codemods"
    folder.mkdir(parents=True)
    (folder / "swap.py").write_text(CODEMOD)
    return Injection(
        file="a.py",
        codemod="codemods/swap.py:SwapFirstTwo",
        pack=str(folder.parent),
        trusted=True,
    )


def test_codemod_changes_its_site_and_no_other_byte(injection):
    source = b"# coding: latin-1\n# \xe9t\xe9\r\nx = [1,2 , 3]\r\n"
    source += b"def f():\r\n\ta() # why\r\n\tb()\r\ny=1"
    result = inject(source, injection)
    assert result.source == source.replace(b"\ta() # why\r\n\tb()\r\n", b"\tb()\r\n\ta() # why\r\n")
    assert result.line == 5


def test_source_that_libcst_would_not_give_back_is_refused(injection):
    with pytest.raises(SiteError, match="LibCST can't reproduce"):
        inject(b"def f():\n    a()\n    b()\n\fx = 1\n", injection)


def test_codemod_that_is_not_trusted_is_never_imported(injection, tmp_path):
    witness = tmp_path / "ran"
    (tmp_path / "breaks/codemods/swap.py").write_text(f"open({str(witness)!r}, 'w')\n")
    with pytest.raises(SiteError) as caught:
        inject(b"def f():\n    a()\n    b()\n", replace(injection, trusted=False))
    assert caught.value.message == (
        "the codemod codemods/swap.py:SwapFirstTwo is Python code of a pack that is not this "
        "project's own"
    )
    assert caught.value.hint == "read it; if you trust it, say so: --trust"
    assert not witness.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codemod": "codemods/none.py:X"}, "has no codemods/none.py"),
        ({"codemod": "codemods/swap.py:None_"}, "codemods/swap.py has no codemod None_"),
        ({"codemod": "codemods/swap.py:Unrelated"}, "has no codemod Unrelated"),
        ({"codemod": "../x.py:X"}, "has no ../x.py"),
        ({"codemod": "codemods/swap.py:Fails"}, "the codemod Fails failed: on purpose"),
    ],
)
def test_codemod_that_can_not_be_used_is_told(injection, changes, message):
    with pytest.raises(SiteError, match=message):
        inject(b"def f():\n    a()\n    b()\n", replace(injection, **changes))


def test_codemod_that_links_out_of_its_pack_is_refused(injection, tmp_path):
    (tmp_path / "outside.py").write_text(CODEMOD)
    (tmp_path / "breaks/codemods/link.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(SiteError, match=r"has no codemods/link\.py"):
        load_codemod(replace(injection, codemod="codemods/link.py:SwapFirstTwo"))


def test_codemod_with_no_site_or_several_names_the_lines(injection):
    with pytest.raises(SiteError, match=r"the codemod SwapFirstTwo has no site in a\.py"):
        inject(b"x = 1\n", injection)
    two = b"def f():\n    a()\n    b()\n\ndef g():\n    a()\n    b()\n"
    with pytest.raises(SiteError, match=r"has 2 sites in a\.py, on lines 1, 5"):
        inject(two, injection)


def test_codemods_file_that_can_not_be_imported_is_told(injection, tmp_path):
    (tmp_path / "breaks/codemods/swap.py").write_text("import no_such_module\n")
    with pytest.raises(SiteError, match="can't be imported: No module named 'no_such_module'"):
        load_codemod(injection)


def test_importing_a_codemod_leaves_no_bytecode(injection, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    load_codemod(injection)
    assert sys.dont_write_bytecode is False
    assert [path.name for path in (tmp_path / "breaks/codemods").iterdir()] == ["swap.py"]


def as_codemod(spec_path, pack="codemods/swap.py:SwapFirstTwo"):
    text = spec_path.read_text()
    start, end = text.index("  inside:"), text.index("fix_diff:")
    spec_path.write_text(text[:start] + f"  codemod: {pack}\n" + text[end:])


def test_only_the_projects_own_pack_is_trusted_unless_asked(tiny_project, tmp_path):
    as_codemod(tiny_project / "breaks/35-01.yaml")
    stranger = tmp_path / "pack"
    stranger.mkdir()
    text = (tiny_project / "breaks/35-01.yaml").read_text()
    (stranger / "35-70.yaml").write_text(text.replace("35-01", "35-70").replace("shard", "other"))
    settings = tiny_project / "pyproject.toml"
    settings.write_text(settings.read_text().replace('["breaks"]', '["breaks", "../pack"]'))
    project = find_project(tiny_project)
    specs = load_catalogue(project).specs
    assert (specs["35-01"].inject.trusted, specs["35-70"].inject.trusted) == (True, False)
    assert load_catalogue(project, trust=True).specs["35-70"].inject.trusted


def test_own_folder_that_is_a_link_to_a_strangers_pack_is_not_trusted(tiny_project, tmp_path):
    as_codemod(tiny_project / "breaks/35-01.yaml")
    (tiny_project / "breaks").rename(tmp_path / "elsewhere")
    (tiny_project / "breaks").symlink_to(tmp_path / "elsewhere")
    specs = load_catalogue(find_project(tiny_project)).specs
    assert not specs["35-01"].inject.trusted


def check_examples(codemod):
    for example in codemod.EXAMPLES:
        if example.after is None:
            with pytest.raises(SiteError):
                run_codemod(codemod, example.before.encode(), "example.py")
        else:
            changed = run_codemod(codemod, example.before.encode(), "example.py")
            assert changed.decode() == example.after


def test_examples_are_checked_both_ways(injection):
    check_examples(load_codemod(injection))


def test_every_codemod_of_this_repository_has_examples_that_hold():
    for spec in load_catalogue(find_project(REPO)).specs.values():
        if spec.inject.codemod:
            codemod = load_codemod(spec.inject)
            assert any(example.after for example in codemod.EXAMPLES), codemod
            assert any(example.after is None for example in codemod.EXAMPLES), codemod
            check_examples(codemod)
