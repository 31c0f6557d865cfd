"""Messages from processes that run a stranger's code, and jobs to them."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaklab.ranks.wire import MAX_MESSAGE_BYTES, Messages, receive_job, send_job, send_message


def test_a_job_arrives_with_more_file_descriptors_than_one_message_takes() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    with ours, theirs:
        send_job(ours, {"job": "x" * 10_000}, [writer] * 150)
        job, fds = receive_job(theirs)
        assert job == {"job": "x" * 10_000}
        assert len(fds) == 150
        os.write(fds[149], b"y")
        assert os.read(reader, 1) == b"y"
        for fd in (reader, writer, *fds):
            os.close(fd)


def test_a_sender_that_goes_away_is_an_end_of_file() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(b"\0\0")
        ours.close()
        with pytest.raises(EOFError):
            receive_job(theirs)


def test_messages_are_cut_as_they_were_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send_message(ours, "a", x=1)
        send_message(ours, "b", text="two\nlines")
        data = theirs.recv(10_000)
    messages = Messages()
    got = [message for byte in data for message in messages.feed(bytes([byte]))]
    assert got == [{"kind": "a", "x": 1}, {"kind": "b", "text": "two\nlines"}]


def test_a_receiver_that_went_away_is_no_error() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        send_message(ours, "a")


@given(st.binary(max_size=200))
def test_what_is_no_message_is_passed_over(data: bytes) -> None:
    messages = Messages()
    found = messages.feed(data + b"\n" + b'{"kind": "a"}\n')
    assert found[-1] == {"kind": "a"}


def test_a_message_of_hostile_size_or_depth_is_dropped() -> None:
    messages = Messages()
    for _ in range(MAX_MESSAGE_BYTES // 1_000_000 + 2):
        assert messages.feed(b"x" * 1_000_000) == []
    assert messages.feed(b"[" * 100_000 + b"\n") == []
    assert messages.feed(b'{"kind": "a"}\n') == [{"kind": "a"}]
