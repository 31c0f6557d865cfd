"""Lines and texts within bounds, whatever was printed and however it was cut into reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from breaklab.ranks.jobs import Line
from breaklab.ranks.stream import LineCutter, LineLog, TextLog

SOME_BYTES = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\xff", b"\0"]))


def lines_of(*parts: bytes, limit: int = 1000) -> list[str]:
    cutter = LineCutter(limit)
    return [line for part in parts for line in cutter.feed(part)] + cutter.flush()


@given(SOME_BYTES, st.integers(1, 5))
def test_lines_do_not_depend_on_how_the_bytes_arrive(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert lines_of(*pieces) == lines_of(data)


def test_a_line_is_whole_when_its_bytes_arrive_apart() -> None:
    assert lines_of(b"ab", b"c\nd", "é".encode()[:1], "é".encode()[1:]) == ["abc", "dé"]


def test_a_carriage_return_ends_a_line_once() -> None:
    assert lines_of(b"10%\r", b"20%\r\nend\r", b"\nnext") == ["10%", "20%", "end", "next"]


def test_a_long_line_keeps_its_beginning_and_says_what_is_missing() -> None:
    assert lines_of(b"x" * 8, b"y" * 8 + b"\nz\n", limit=10) == [
        "xxxxxxxxyy [... 6 more bytes]",
        "z",
    ]


def test_a_line_without_end_takes_bounded_memory() -> None:
    cutter = LineCutter(limit=10)
    for _ in range(1000):
        assert cutter.feed(b"x" * 1000) == []
    assert cutter.flush() == ["xxxxxxxxxx [... 999990 more bytes]"]


def test_the_first_and_the_last_lines_are_kept() -> None:
    log = LineLog(head_chars=310, tail_chars=310)
    for number in range(10):
        log.add(Line(0, float(number), "x"))
    assert [line.seconds for line in log.lines()] == [0, 1, 2, 7, 8, 9]
    assert log.left_out == 4


@given(st.lists(st.integers(0, 2000), max_size=60))
def test_lines_are_kept_or_counted_and_stay_within_bounds(lengths: list[int]) -> None:
    log = LineLog(head_chars=1000, tail_chars=3000)
    for length in lengths:
        log.add(Line(0, 0.0, "x" * length))
    assert len(log.lines()) + log.left_out == len(lengths)
    assert sum(len(line.text) for line in log.lines()) <= 4000


def test_a_text_keeps_its_beginning_and_its_end() -> None:
    log = TextLog(head_bytes=3, tail_bytes=3)
    log.add(b"ab")
    assert log.text() == "ab"
    log.add(b"cdef")
    assert log.text() == "abcdef"
    log.add(b"ghij")
    assert log.text() == "abc\n[... 4 bytes left out ...]\nhij"
