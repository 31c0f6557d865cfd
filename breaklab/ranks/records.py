"""What each rank communicates, in memory that a watcher reads while the rank is blocked or dead.

API::

    board = Board.create(num_ranks)         # before the fork; or Board.at(path, num_ranks) anywhere
    install(board.page(rank))               # in the rank (records_install.py); "" or why it can't
    board.page(rank).snapshot()             # in the watcher: RankSnapshot
    board.page(rank).history(after=number)  # finished and open records, for timelines

A rank writes a :class:`Record` into one of 256 slots when it issues a collective or a send or
receive, marks it while it waits for it, and again when the wait is over. Beside the slots it counts
what it issued per :class:`Channel`, so a watcher knows the position of every rank in every group
even when the slots have been written over.

Only the rank itself writes its page (but for one word, the request), each time the contents first
and then the counter of moves. So what a reader finds while a rank waits and its counter stands
still is whole; a slot that is being written over while it is read is left out.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from breaklab.ranks.ranges import parse_ranks
from breaklab.ranks.waking import wake

NUM_SLOTS = 256
SLOT_BYTES = 512
NUM_CHANNELS = 256
CHANNEL_BYTES = 128
MAX_WAITING = 8  # threads of one rank that wait at the same time
TRACE_BYTES = 64 * 1024

# Words of the header, eight bytes each. The first four are written in one go, moves last.
FREE_THREADS, WAITING, HEAD, MOVES = 0, 1, 2, 3
MARKS = 4  # of what is waited for, MAX_WAITING words
CHANNELS, FINISHED, REQUEST, ANSWER, OVERFLOW, PID, ANSWERER, TRACE_LENGTH = range(12, 20)
HEADER = struct.Struct("=QQQQ")
HEADER_BYTES = 256

# A slot: number, sequence, entered_ns, left_ns; then what is the same at every call of a line.
SLOT = struct.Struct("=QQQQ")
CALL = struct.Struct("=qiHH")  # num_bytes, root, channel, length of the texts that follow
LEFT_AT = 24
_CHANNELS_AT = HEADER_BYTES
_SLOTS_AT = _CHANNELS_AT + NUM_CHANNELS * CHANNEL_BYTES
_TRACE_AT = _SLOTS_AT + NUM_SLOTS * SLOT_BYTES
PAGE_BYTES = _TRACE_AT + TRACE_BYTES


@dataclass(frozen=True)
class Channel:
    """Operations that pair by their order: those of a group, or those between two ranks."""

    kind: str  # ``collective``, ``send``, ``recv`` or ``recv_any``
    group: str  # torch's name of the group
    members: tuple[int, ...] = ()  # global ranks
    peer: int = -1  # global rank; send and recv only
    tag: int = 0


@dataclass(frozen=True)
class Record:
    """One operation that a rank issued."""

    number: int  # of this rank's records, from 0
    channel: Channel
    sequence: int  # position in the channel, from 1
    operation: str  # ``all_reduce``, ``recv``, ..., the name in torch.distributed
    family: str = ""  # what it is to gloo, where that is known better than from the name
    shape: str = ""
    dtype: str = ""
    place: str = ""  # ``file:line`` of the user's
    num_bytes: int = -1  # of the rank's own contribution; -1: unknown, or not comparable
    root: int = -1  # global rank, of operations that have one
    entered_ns: int = 0  # ``time.time_ns()``
    left_ns: int = 0  # 0: not yet, or never waited for


@dataclass(frozen=True)
class RankSnapshot:
    """One rank at one moment."""

    rank: int
    moves: int  # changes with everything the rank records
    waiting: tuple[Record, ...] = ()  # what its blocked threads wait for
    free_threads: int = 0  # other threads that may communicate
    channels: dict[Channel, int] = field(default_factory=dict)  # how many were issued
    recent: tuple[Record, ...] = ()
    left: bool = False  # its work is over; it issues nothing more
    complete: bool = True  # False: it used more channels than could be counted


class Page:
    """One rank's part of a :class:`Board`."""

    def __init__(self, memory: memoryview, rank: int) -> None:
        self.rank = rank
        self.bytes = memory
        self.words = memory.cast("Q")  # the header's words, and each channel's count

    def channel_at(self, index: int) -> int:
        """Offset of a channel: a word with its count, then its text."""
        return _CHANNELS_AT + index * CHANNEL_BYTES

    def slot_at(self, number: int) -> int:
        """Offset of the slot of record ``number``."""
        return _SLOTS_AT + number % NUM_SLOTS * SLOT_BYTES

    def head(self) -> tuple[int, int, bool]:
        """Return moves, the number of waiting threads, and whether the rank has finished."""
        return self.words[MOVES], self.words[WAITING], bool(self.words[FINISHED])

    def snapshot(self, after: int = -1) -> RankSnapshot:
        """Read the page, of the records only those with a number above ``after``."""
        return Page(memoryview(bytes(self.bytes[:_TRACE_AT])), self.rank)._parse(after)

    def _parse(self, after: int) -> RankSnapshot:
        channels = list(self._channels())
        head = self.words[HEAD]
        numbers = range(max(0, head - NUM_SLOTS, after + 1), head)
        found = (self._record(number, channels) for number in numbers)
        recent = {record.number: record for record in found if record is not None}
        marks = self.words[MARKS : MARKS + min(self.words[WAITING], MAX_WAITING)]
        return RankSnapshot(
            rank=self.rank,
            moves=self.words[MOVES],
            waiting=tuple(recent[mark] for mark in marks if mark in recent),
            free_threads=self.words[FREE_THREADS],
            channels=dict(channels),
            recent=tuple(recent.values()),
            left=bool(self.words[FINISHED]),
            complete=not self.words[OVERFLOW] and all(mark in recent for mark in marks),
        )

    def _channels(self) -> Iterator[tuple[Channel, int]]:
        for index in range(self.words[CHANNELS]):
            at = self.channel_at(index)
            (count,) = struct.unpack_from("<Q", self.bytes, at)
            text = bytes(self.bytes[at + 8 : at + CHANNEL_BYTES]).rstrip(b"\0").decode()
            yield parse_channel(text), count

    def _record(self, number: int, channels: list[tuple[Channel, int]]) -> Record | None:
        at = self.slot_at(number)
        stored, sequence, entered_ns, left_ns = SLOT.unpack_from(self.bytes, at)
        num_bytes, root, channel, length = CALL.unpack_from(self.bytes, at + SLOT.size)
        if stored != number or channel >= len(channels):
            return None
        begin = at + SLOT.size + CALL.size
        texts = bytes(self.bytes[begin : begin + length]).decode(errors="replace").split("\x1f")
        operation, shape, dtype, place = (texts + [""] * 4)[:4]
        return Record(
            number=number,
            channel=channels[channel][0],
            sequence=sequence,
            operation=operation,
            shape=shape,
            dtype=dtype,
            place=place,
            num_bytes=num_bytes,
            root=root,
            entered_ns=entered_ns,
            left_ns=left_ns,
        )

    def history(self, after: int = -1) -> tuple[Record, ...]:
        """Records with a number above ``after`` that are still in their slots, oldest first."""
        return self.snapshot(after).recent

    def request_trace(self) -> int:
        """Ask the rank for its trace; return the request's number, see :meth:`trace`."""
        self.words[REQUEST] += 1
        if self.words[ANSWERER]:
            wake(self.words[PID], self.words[ANSWERER])
        return self.words[REQUEST]

    def trace(self, request: int) -> bytes | None:
        """Return the answer to ``request``; None while there is none."""
        if self.words[ANSWER] < request:
            return None
        return bytes(self.bytes[_TRACE_AT : _TRACE_AT + self.words[TRACE_LENGTH]])

    def answer(self, request: int, trace: bytes) -> None:
        """In the rank: answer ``request`` with ``trace``, cut off at what fits."""
        trace = trace[:TRACE_BYTES]
        self.bytes[_TRACE_AT : _TRACE_AT + len(trace)] = trace
        self.words[TRACE_LENGTH] = len(trace)
        self.words[ANSWER] = request

    def finish(self) -> None:
        """In the rank: say that its work is over and it will issue nothing more."""
        self.words[FINISHED] = 1
        self.words[MOVES] += 1


class Board:
    """Shared memory with one :class:`Page` for each rank."""

    def __init__(self, memory: mmap.mmap, num_ranks: int) -> None:
        self._memory = memory
        self.num_ranks = num_ranks
        view = memoryview(memory)
        self.pages = tuple(
            Page(view[rank * PAGE_BYTES : (rank + 1) * PAGE_BYTES], rank)
            for rank in range(num_ranks)
        )

    @classmethod
    def create(cls, num_ranks: int) -> Board:
        """Make a board that ranks forked from now on share with this process; no file."""
        return cls(mmap.mmap(-1, num_ranks * PAGE_BYTES), num_ranks)

    @classmethod
    def at(cls, path: str | Path, num_ranks: int) -> Board:
        """Open the board in file ``path``, or make it, for ranks that are no forks."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size < num_ranks * PAGE_BYTES:
                os.ftruncate(fd, num_ranks * PAGE_BYTES)
            return cls(mmap.mmap(fd, num_ranks * PAGE_BYTES), num_ranks)
        finally:
            os.close(fd)

    def page(self, rank: int) -> Page:
        """The page of ``rank``."""
        return self.pages[rank]

    def snapshot(self, left: frozenset[int] = frozenset()) -> tuple[RankSnapshot, ...]:
        """Read all pages; ``left`` are ranks known to be over."""
        snapshots = (page.snapshot() for page in self.pages)
        return tuple(replace(one, left=one.left or one.rank in left) for one in snapshots)


def parse_channel(text: str) -> Channel:
    """Read a channel as a rank wrote it; see :func:`channel_text`."""
    kind, group, members, peer, tag = text.split("|")
    return Channel(kind, group, parse_ranks(members), int(peer), int(tag))
