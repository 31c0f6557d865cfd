"""Only the site's own bytes change, whatever the rest of the file is made of."""

from __future__ import annotations

import codecs

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from breaklab.inject.edit import inject
from breaklab.model import Action, Injection

NEWLINES = ("\n", "\r\n", "\r")
INDENTS = ("    ", "  ", "\t", " ", "        ")
LINES = (  # of a function's body, one level deep: {i} is the indentation
    "{i}other(1, 2)",
    "{i}# a comment: alpha",
    "",
    "{i}",
    "   # a comment anywhere",
    "{i}x = 'alpha' ; y = 2",
    "{i}if x:",
    "{i}text = '''",
    "\f",  # a form feed at the start of a line of code would end the block
    "{i}z = (1 +",
    "{i}w = \\",
    "{i}s = 'a\N{LINE SEPARATOR}\x0b\x85b'",
    "{i}\N{LATIN SMALL LETTER E WITH ACUTE} = 1",
)
CLOSING = {  # lines that need another behind them
    "{i}if x:": "{i}{i}pass",
    "{i}text = '''": "  verbatim\t",
    "{i}z = (1 +": "2)",
    "{i}w = \\": "   3",
}
STRING_END = "{i}end of the text'''"


@st.composite
def blocks(draw, indent, newlines):
    """Lines of a block, each with a newline of its own."""
    text = ""
    for line in draw(st.lists(st.sampled_from(LINES), max_size=6)):
        parts = [line, *([CLOSING[line]] if line in CLOSING else [])]
        parts += [STRING_END] if "'''" in line else []
        for part in parts:
            text += part.replace("{i}", indent) + draw(st.sampled_from(newlines))
    return text


@st.composite
def sources(draw):
    """(bytes before the site's line, the line's start, its newline, bytes behind, encoding)."""
    newlines = draw(st.sampled_from([(n,) for n in NEWLINES] + [NEWLINES]))
    indent = draw(st.sampled_from(INDENTS))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1"]))
    head = f"# -*- coding: latin-1 -*-{newlines[0]}" if encoding == "latin-1" else ""
    head += draw(st.sampled_from(["", f"'''docs'''{newlines[0]}", f"\f{newlines[0]}"]))
    before = f"{head}def f(x):{newlines[0]}" + draw(blocks(indent, newlines))
    newline = draw(st.sampled_from([*newlines, ""]))
    after = draw(blocks(indent, newlines)) if newline else ""
    assume(not (newline == "\r" and after.startswith("\n")))  # together they are one newline
    texts = [before, after]
    if encoding == "latin-1":
        texts = [text.replace("\N{LINE SEPARATOR}", "") for text in texts]
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    first, last = (text.encode(codec) for text in texts)
    bom = codecs.BOM_UTF8 if encoding == "utf-8-sig" else b""
    return bom + first, indent, newline, last


SITE = "alpha(1, key='é')"


def broken(source, action, code=""):
    before, indent, newline, after = source
    encoding = "latin-1" if b"latin-1" in before[:30] else "utf-8"
    line = indent.encode() + SITE.encode(encoding) + newline.encode()
    injection = Injection(
        file="a.py", inside="f", find="alpha($N, key=$K)", action=action, code=code
    )
    result = inject(before + line + after, injection).source
    assert result.startswith(before)
    assert result.endswith(after)
    assert len(result) >= len(before) + len(after)
    middle = result[len(before) : len(result) - len(after)]
    return middle.decode(encoding), line.decode(encoding)


@settings(max_examples=60, deadline=None)  # the machine may be loaded
@given(sources())
def test_lines_put_in_behind_carry_the_indentation_and_newline_of_their_site(source):
    _, indent, newline, _ = source
    new, line = broken(source, Action.INSERT_AFTER, "if $K:\n    beta($N)\n")
    assert new.startswith(line)
    ended = newline or new[len(line) : -len(f"{indent}if 'é':")].partition(indent)[0]
    inserted = new[len(line) :]
    assert inserted.split() == ["if", "'é':", "beta(1)"]
    first, second = inserted.lstrip("\r\n").splitlines()
    assert first == f"{indent}if 'é':"
    assert second.startswith(indent)
    assert second.endswith("beta(1)")
    assert len(second) > len(first) - len("if 'é':") + len("beta(1)")
    assert inserted.endswith(newline) if newline else not inserted.endswith(("\n", "\r"))
    assert ended in NEWLINES


@settings(max_examples=60, deadline=None)  # the machine may be loaded
@given(sources())
def test_lines_put_in_before_leave_the_site_itself(source):
    _, indent, newline, _ = source
    new, line = broken(source, Action.INSERT_BEFORE, "beta()")
    assert new.endswith(line)
    inserted = new.removesuffix(line)
    assert inserted.rstrip("\r\n") == f"{indent}beta()"
    assert inserted.endswith(newline or tuple(NEWLINES))


@settings(max_examples=60, deadline=None)  # the machine may be loaded
@given(sources())
def test_replaced_statement_changes_only_itself(source):
    _, indent, newline, _ = source
    new, _ = broken(source, Action.REPLACE_WITH, "beta($N)")
    assert new == f"{indent}beta(1){newline}"


@settings(max_examples=60, deadline=None)  # the machine may be loaded
@given(sources())
def test_replaced_argument_changes_only_itself(source):
    before, indent, newline, after = source
    encoding = "latin-1" if b"latin-1" in before[:30] else "utf-8"
    line = f"{indent}alpha(beta(1))".encode(encoding)
    injection = Injection(file="a.py", find="beta(1)", action=Action.REPLACE_WITH, code="1 + 1")
    result = inject(before + line + newline.encode() + after, injection).source
    assert result == before + line.replace(b"beta(1)", b"1 + 1") + newline.encode() + after


@settings(max_examples=60, deadline=None)  # the machine may be loaded
@given(sources())
def test_deleted_statement_goes_with_its_line_or_leaves_pass(source):
    before, indent, newline, after = source
    new, _ = broken(source, Action.DELETE)
    assert new in ("", f"{indent}pass{newline}")
    compile(before + new.encode() + after, "a.py", "exec")


@settings(max_examples=60, deadline=None)  # the machine may be loaded
@given(sources(), st.sampled_from([Action.MOVE_BEFORE, Action.MOVE_AFTER]))
def test_moved_statement_takes_its_line_along_and_no_other_byte(source, action):
    before, indent, newline, after = source
    if not newline:
        newline = "\n"
    encoding = "latin-1" if b"latin-1" in before[:30] else "utf-8"
    first, second, third = (
        f"{indent}{name}(){newline}".encode(encoding) for name in ("first", "second", "third")
    )
    find, code = ("third()", "first()") if action is Action.MOVE_BEFORE else ("first()", "third()")
    injection = Injection(file="a.py", inside="f", find=find, action=action, code=code)
    result = inject(before + first + second + third + after, injection).source
    order = (third, first, second) if action is Action.MOVE_BEFORE else (second, third, first)
    assert result == before + b"".join(order) + after
