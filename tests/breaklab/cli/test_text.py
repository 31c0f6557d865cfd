from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaklab.cli.text import clean, first_sentence, one_line


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("plain \u00e1\u00f1 text\n\twith tab", "plain \u00e1\u00f1 text\n\twith tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;c3RvbGVu", ""),  # clipboard write that never ends
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x9b31mC1 form", "C1 form"),
        ("back\x08space\rreturn\x7f", "backspacereturn"),
        ("ab\u202ecd", "abcd"),
        ("\x1bcreset", "reset"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
        ("dos\r\nlines", "dos\nlines"),
    ],
)
def test_terminal_escapes_and_controls_are_removed_and_text_stays(
    dirty: str, expected: str
) -> None:
    assert clean(dirty) == expected


@given(st.text(st.characters(max_codepoint=0x250)))
def test_cleaned_text_holds_no_control_character_and_cleaning_again_changes_nothing(
    text: str,
) -> None:
    cleaned = clean(text)
    assert not [each for each in cleaned if ord(each) < 32 and each not in "\n\t"]
    assert "\x7f" not in cleaned
    assert clean(cleaned) == cleaned


def test_one_line_joins_paragraphs() -> None:
    assert one_line("a\n  b\t c\n") == "a b c"


def test_first_sentence_ends_at_its_own_mark() -> None:
    assert first_sentence("It stops at step 1. Then nothing.") == "It stops at step 1."
    assert first_sentence("loss is\n2.40 on rank 0") == "loss is 2.40 on rank 0"
    assert first_sentence("Why? Because. ") == "Why?"
