"""What each action and each kind of metavariable does, on small sources."""

from __future__ import annotations

from textwrap import dedent

import pytest

from breaklab.errors import SiteError
from breaklab.inject.edit import inject
from breaklab.model import Action, Injection


def break_in(source, find, action="replace_with", code="", inside=""):
    injection = Injection(
        file="a.py", inside=inside, find=find, action=Action(action), code=dedent(code)
    )
    return inject(dedent(source).encode(), injection).source.decode()


def error_of(source, find, action="delete", code="", inside=""):
    with pytest.raises(SiteError) as caught:
        break_in(source, find, action, code, inside)
    return caught.value


EXAMPLES = {  # name: (source, find, action, new code, what comes out)
    "statement replaced": ("a = 1\nb = 2\n", "a = 1", "replace_with", "a = 3", "a = 3\nb = 2\n"),
    "comment behind it stays": (
        "a = 1  # why\n",
        "a = 1",
        "replace_with",
        "b = 2",
        "b = 2  # why\n",
    ),
    "one statement becomes two": (
        "def f():\n  a = 1\n",
        "a = 1",
        "replace_with",
        "if x:\n    a = 2\n",
        "def f():\n  if x:\n    a = 2\n",
    ),
    "expression replaced": ("x = f(g(1) + 2)\n", "g(1)", "replace_with", "h()", "x = f(h() + 2)\n"),
    "new operator gets parentheses where it needs them": (
        "x = 2 * n\n",
        "n",
        "replace_with",
        "n + 1",
        "x = 2 * (n + 1)\n",
    ),
    "new operator gets none where it needs none": (
        "x = f(n)\n",
        "n",
        "replace_with",
        "n + 1",
        "x = f(n + 1)\n",
    ),
    "captured operator keeps together": (
        "x = scale(a + b)\n",
        "scale($X)",
        "replace_with",
        "$X * 2",
        "x = (a + b) * 2\n",
    ),
    "captured tuple keeps together": (
        "return_value = a, b\n",
        "return_value = $X",
        "replace_with",
        "f($X, 1)",
        "f((a, b), 1)\n",
    ),
    "captured name used twice": (
        "s.wait(h)\n",
        "$A.wait($B)",
        "insert_after",
        "$A.wait($B)",
        "s.wait(h)\ns.wait(h)\n",
    ),
    "arguments of any number": (
        "f(a, b, key=1)\n",
        "f(a, $$$REST)",
        "replace_with",
        "g($$$REST)",
        "g(b, key=1)\n",
    ),
    "no arguments take their comma along": (
        "f(a)\n",
        "f(a, $$$REST)",
        "replace_with",
        "g(b, $$$REST)",
        "g(b)\n",
    ),
    "no leading arguments take their comma along": (
        "f(a)\n",
        "f($$$REST, a)",
        "replace_with",
        "g($$$REST, b)",
        "g(b)\n",
    ),
    "keyword arguments in any order": (
        "all_reduce(t, group=g, op=SUM)\n",
        "all_reduce($T, op=SUM, group=$G)",
        "replace_with",
        "all_reduce($T, op=AVG, group=$G)",
        "all_reduce(t, op=AVG, group=g)\n",
    ),
    "parameters of any number": (
        "@cached\ndef f(a, b=(1), *args, c: int = 3, **kw) -> int:\n    return a\n",
        "@cached\ndef f($$$P) -> $R:\n    $$$BODY",
        "replace_with",
        "def f($$$P) -> $R:\n    $$$BODY",
        "def f(a, b=(1), *args, c: int = 3, **kw) -> int:\n    return a\n",
    ),
    "decorated function deleted whole": (
        "@a\n@b(1)\ndef f():\n    pass\n\n\nx = 1\n",
        "@$A\n@$B\ndef f():\n    pass",
        "delete",
        "",
        "\n\nx = 1\n",
    ),
    "body taken out of its condition": (
        "def f():\n\tif a:\n\t\tb()\n\t\tif c:\n\t\t\td()\n\te()\n",
        "if a:\n    $$$BODY",
        "replace_with",
        "$$$BODY",
        "def f():\n\tb()\n\tif c:\n\t\td()\n\te()\n",
    ),
    "body put into a condition": (
        "def f():\n  with lock:\n    if c:\n      d()\n    e()\n",
        "with lock:\n    $$$BODY",
        "replace_with",
        "if rank == 0:\n    with lock:\n        $$$BODY",
        "def f():\n  if rank == 0:\n    with lock:\n      if c:\n        d()\n      e()\n",
    ),
    "white space inside a moved string stays": (
        "def f():\n    if a:\n        s = '''\n        text\n'''\n        t()\n",
        "if a:\n    $$$BODY",
        "replace_with",
        "$$$BODY",
        "def f():\n    s = '''\n        text\n'''\n    t()\n",
    ),
    "white space inside a new string stays": (
        "def f():\n  a()\n",
        "a()",
        "insert_after",
        's = """\n    text\n"""\n',
        'def f():\n  a()\n  s = """\n    text\n"""\n',
    ),
    "only statement of a block leaves pass": (
        "def f():\n    for x in y:\n        g(x)  # why\n    h()\n",
        "g(x)",
        "delete",
        "",
        "def f():\n    for x in y:\n        pass  # why\n    h()\n",
    ),
    "only statement behind a colon leaves pass": (
        "if a: b()\n",
        "b()",
        "delete",
        "",
        "if a: pass\n",
    ),
    "semicolon at the end is no other statement": ("a();\nb()\n", "a()", "delete", "", "b()\n"),
    "one of two on a line replaced by one": (
        "a(); b()\n",
        "b()",
        "replace_with",
        "c()",
        "a(); c()\n",
    ),
    "moved up": ("a()\nb()\nc()\n", "c()", "move_before", "a()", "c()\na()\nb()\n"),
    "moved down with its comment": (
        "a()  # why\nb()\nc()\n",
        "a()",
        "move_after",
        "b()",
        "b()\na()  # why\nc()\n",
    ),
    "moved to another depth": (
        "def f():\n  for x in y:\n    g()\n    if h():\n      i()\n  k()\n",
        "if h():\n    i()",
        "move_after",
        "for x in y:\n    $$$B",
        "def f():\n  for x in y:\n    g()\n  if h():\n    i()\n  k()\n",
    ),
    "moved away from a last line without newline": (
        "a()\nb()",
        "b()",
        "move_before",
        "a()",
        "b()\na()\n",
    ),
    "moved behind a last line without newline": (
        "a()\nb()",
        "a()",
        "move_after",
        "b()",
        "b()\na()",
    ),
    "inside an f-string": (
        "x = f'{rank}/{n}'\n",
        "n",
        "replace_with",
        "n - 1",
        "x = f'{rank}/{n - 1}'\n",
    ),
    "inside a comprehension": (
        "x = [f(i) for i in range(n) if i]\n",
        "range($N)",
        "replace_with",
        "range($N - 1)",
        "x = [f(i) for i in range(n - 1) if i]\n",
    ),
    "inside a lambda in a call": (
        "x = g(key=lambda r: r + 1)\n",
        "r + 1",
        "replace_with",
        "r",
        "x = g(key=lambda r: r)\n",
    ),
    "a default is an expression": (
        "def f(n=1, m=2): pass\n",
        "2",
        "replace_with",
        "3",
        "def f(n=1, m=3): pass\n",
    ),
    "several statements in a row": (
        "a = 1\nb = 2\nc = 3\n",
        "a = $X\nb = $Y",
        "replace_with",
        "b = $Y\na = $X",
        "b = 2\na = 1\nc = 3\n",
    ),
    "await and async": (
        "async def f():\n    async with a:\n        await b(1)\n",
        "await b($X)",
        "replace_with",
        "b($X)",
        "async def f():\n    async with a:\n        b(1)\n",
    ),
    "slices of any number": (
        "x[0, :, n]\n",
        "x[0, $$$S]",
        "replace_with",
        "x[1, $$$S]",
        "x[1, :, n]\n",
    ),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_break_goes_in_as_written(example):
    source, find, action, code, expected = example
    assert break_in(source, find, action, code) == expected


@pytest.mark.parametrize(
    "source",
    [
        "all_reduce(grad, op=SUM)\n",
        "all_reduce(grad,op = SUM)\n",
        "all_reduce(\n    grad,  # the flat one\n    op=SUM,\n)\n",
        "(all_reduce(((grad)), op=(SUM)))\n",
        "all_reduce \\\n    (grad, op=SUM)\n",
        "all_reduce(op=SUM, *[]) ; all_reduce(grad, op=SUM)\n",
    ],
)
def test_layout_of_the_source_does_not_matter(source):
    assert "AVG" in break_in(source, "all_reduce($T, op=SUM)", code="all_reduce($T, op=AVG)")


@pytest.mark.parametrize(
    ("pattern", "same", "other"),
    [
        ("f('a')", 'f("a")', "f('b')"),
        ("f('ab')", "f('a' 'b')", "f(b'ab')"),
        ("f(1000)", "f(1_000)", "f(1000.0)"),
        ("f(0x10)", "f(16)", "f(0x11)"),
        ("a < b", "(a) < b", "b > a"),
        ("not a in b", "not (a in b)", "a not in b"),
        ("x[1:2]", "x[1 : 2]", "x[1:2:1]"),
        ("lambda: x", "lambda : (x)", "lambda y: x"),
        ("f(*a, **b)", "f( *a , ** b )", "f(a, **b)"),
    ],
)
def test_spelling_does_not_matter_and_meaning_does(pattern, same, other):
    assert break_in(f"y = {same}\n", pattern, code="z").split()[-1].strip("()") == "z"
    assert "no site" in error_of(f"y = {other}\n", pattern, "replace_with", "z").message


@pytest.mark.parametrize(
    ("inside", "line"),
    [("f", 2), ("f.inner", 4), ("C.m", 7), ("C.m.inner", 9), ("C.D.m", 12)],
)
def test_function_named_by_inside_is_searched(inside, line):
    source = """\
        def f():
            a(1)
            def inner():
                a(2)
        class C:
            def m(self):
                a(3)
                def inner():
                    a(4)
            class D:
                def m(self):
                    a(5)
        """
    number = {2: 1, 4: 2, 7: 3, 9: 4, 12: 5}[line]
    injection = Injection(
        file="a.py", inside=inside, find=f"a({number})", action=Action.REPLACE_WITH, code="b()"
    )
    result = inject(dedent(source).encode(), injection)
    assert result.line == line
    assert result.source.decode().splitlines()[line - 1].strip() == "b()"


def test_same_metavariable_twice_wants_equal_code():
    assert break_in("f(a + b, a+b)\n", "f($X, $X)", code="g($X)") == "g(a + b)\n"
    assert error_of("f(a, b)\n", "f($X, $X)").hint == (
        "the nearest is line 1: `f(a, b)`; wanted `a`, found `b`"
    )


def test_metavariable_stands_for_one_argument_only():
    assert "no site" in error_of("f(a, b)\n", "f($X)").message


NO_SITE = """\
def step(model, rank):
    # a comment
    dist.all_reduce(grad, op=SUM)
    return grad / world_size


class Loop:
    def run(self): ...
"""


def test_missing_site_shows_the_nearest_and_what_differs():
    error = error_of(NO_SITE, "dist.all_reduce(grad, op=AVG)", inside="step")
    assert error.message == "`dist.all_reduce(grad, op=AVG)` has no site in `step` of a.py"
    assert error.hint == (
        "the nearest is line 3: `dist.all_reduce(grad, op=SUM)`; wanted `AVG`, found `SUM`"
    )


def test_missing_function_suggests_a_name():
    error = error_of(NO_SITE, "x", inside="stepp")
    assert error.message == "a.py has no function or class `stepp`"
    assert error.hint == "did you mean `step`?"
    assert error_of(NO_SITE, "x", inside="Zebra").hint == "it has: step, Loop, Loop.run"


def test_several_sites_are_all_named():
    error = error_of("a()\nb()\na()\n", "a()")
    assert error.message == "`a()` has 2 sites in a.py, on lines 1, 3"
    assert "name the function in `inside`" in error.hint


@pytest.mark.parametrize(
    ("source", "find", "action", "code", "message"),
    [
        ("a()\n", "a(", "delete", "", "the pattern `a(` is not valid Python"),
        ("a()\n", "", "delete", "", "the pattern `` would match anything"),
        ("a()\n", "$$$A", "delete", "", "the pattern `$$$A` would match anything"),
        ("a()\n", "a()", "replace_with", "b(", "the new code is not valid Python: line 1"),
        ("a()\n", "a()", "replace_with", "$X", "`$X` is in the new code but not in `find`"),
        ("a(\n", "a()", "delete", "", "a.py is not valid Python: line 1"),
        ("a()\n", "a()", "replace_with", "return 1", "the source with the new code is not valid"),
        ("a(); b()\n", "a()", "delete", "", "line 1 of a.py holds other code beside the site"),
        ("a(); b()\n", "a()", "replace_with", "if x:\n    a()", "holds other code beside the site"),
        ("a(); b()\n", "a()", "insert_after", "c()", "holds other code beside the site"),
        ("a()\nb()\n", "a()", "move_before", "b()", "already stands where it is to be moved"),
        (
            "x = f'{a}'\n",
            "a",
            "replace_with",
            "b['c']",
            "the source with the new code is not valid",
        ),
        ("f(k=1)\n", "f($$$A)", "replace_with", "[$$$A]", "can't be put into `[$$$A]`"),
    ],
)
def test_break_that_can_not_go_in_says_why(source, find, action, code, message):
    assert message in error_of(source, find, action, code).message


def test_source_that_can_not_be_decoded_is_told():
    injection = Injection(file="a.py", find="a()", action=Action.DELETE)
    with pytest.raises(SiteError, match=r"a\.py can't be decoded"):
        inject(b"# coding: no-such\na()\n", injection)
    with pytest.raises(SiteError, match=r"a\.py can't be decoded"):
        inject(b"a('\xff')\n", injection)


def test_new_code_outside_the_files_encoding_is_told():
    injection = Injection(
        file="a.py", find="a()", action=Action.REPLACE_WITH, code="'\N{GREEK SMALL LETTER PI}'"
    )
    with pytest.raises(SiteError, match="can't be written in the file's encoding, iso-8859-1"):
        inject(b"# coding: latin-1\na()\n", injection)


def test_pattern_that_can_match_in_too_many_ways_is_stopped():
    source = f"f({', '.join(f'a{i}' for i in range(60))})\n"
    pattern = f"f({', '.join(f'$$${letter}' for letter in 'ABCDEFGH')}, nothing)"
    assert "can match in too many ways" in error_of(source, pattern).message


@pytest.mark.parametrize(
    "source", ["(" * 3000 + "1" + ")" * 3000, "-" * 5000 + "1", "1+" * 9000 + "1"]
)
def test_source_or_pattern_that_is_nested_too_deeply_is_told(source):
    assert error_of(f"x = {source}\na()\n", "b()").message
    assert error_of("a()\n", source).message


def test_form_feed_in_front_of_the_site_stays():
    assert break_in("x = 1\n\fa(b, c)\n", "b", code="d") == "x = 1\n\fa(d, c)\n"
    assert break_in("x = 1\n\fa()\n", "a()", code="b()") == "x = 1\n\fb()\n"


def test_empty_line_that_libcst_loses_moves_no_site():
    source = "def f():\n    a(1)\n\n   # not quite in the block\n\n\n\x0cb(2)\nc(3)\n"
    assert break_in(source, "b($X)", code="d($X)") == source.replace("b(2)", "d(2)")
    assert "on lines 2, 9" in error_of(f"{source}a(1)\n", "a(1)").message


def test_pristine_bytes_are_left_alone_when_nothing_matches():
    source = b"a()\n"
    with pytest.raises(SiteError):
        inject(source, Injection(file="a.py", find="b()", action=Action.DELETE))
    assert source == b"a()\n"
