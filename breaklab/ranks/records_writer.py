"""Writes one rank's page of the board. Every call costs the rank time, so this is kept short."""

from __future__ import annotations

import _thread
import struct
import threading
import time

from breaklab.ranks.ranges import format_ranks
from breaklab.ranks.records import (
    CALL,
    CHANNEL_BYTES,
    CHANNELS,
    HEADER,
    LEFT_AT,
    MARKS,
    MAX_WAITING,
    NUM_CHANNELS,
    NUM_SLOTS,
    OVERFLOW,
    SLOT,
    SLOT_BYTES,
    Page,
)

# Threads of torch's and of common libraries' that never communicate between ranks.
_HARMLESS = ("QueueFeederThread", "pin_memory", "TMonitor", "tqdm")

_OUR_THREADS = 1  # the one that answers requests for traces

ChannelKey = tuple[str, int, int]  # kind, peer, tag


class GroupChannels:
    """A process group's name and members, and its channels in use."""

    def __init__(self, name: str, members: tuple[int, ...]) -> None:
        self.name = name
        self.members = members  # global ranks, by rank in the group
        self.indices: dict[ChannelKey, int] = {}

    def text(self, key: ChannelKey) -> str:
        """The channel as :func:`breaklab.ranks.records.parse_channel` reads it."""
        kind, peer, tag = key
        return f"{kind}|{self.name}|{format_ranks(self.members)}|{peer}|{tag}"


class Call:
    """What is the same at every call of one line, ready to be written."""

    def __init__(self, channel: int, texts: bytes, num_bytes: int, root: int) -> None:
        r"""Prepare a call.

        Args:
            channel: index of the channel.
            texts: operation, shape, dtype and place, separated by ``\x1f``.
            num_bytes: size of the rank's own contribution, -1 if it can't be compared.
            root: global rank of the root, -1 if there is none.
        """
        texts = texts[: SLOT_BYTES - SLOT.size - CALL.size]
        self.channel = channel
        self.encoded = CALL.pack(num_bytes, root, channel, len(texts)) + texts
        self.pack_into = struct.Struct(f"{SLOT.format}{len(self.encoded)}s").pack_into


class Writer:
    """What a rank does to its page. Safe to use from several threads."""

    def __init__(self, page: Page) -> None:
        self._bytes = page.bytes
        self._words = page.words
        self._lock = threading.Lock()
        self._pack_header = HEADER.pack_into
        self._moves = 0
        self._head = 0
        self._free_threads = 0
        self._counts: list[int] = []  # by channel index
        self._count_words: list[int] = []  # where they are in the page
        self._channel_of: list[int] = [0] * NUM_SLOTS
        self._waiting: list[int] = []  # record numbers, one for each blocked thread
        self._slots = [page.slot_at(number) for number in range(NUM_SLOTS)]
        self._channel_at = page.channel_at

    def channel(self, group: GroupChannels, key: ChannelKey) -> int:
        """Return the index of a group's channel, giving it one first if it is new."""
        index = group.indices.get(key)
        if index is None:
            with self._lock:
                index = group.indices[key] = self._open_channel(group.text(key))
        return index

    def enter(self, call: Call) -> int:
        """Write a new record; return its number."""
        with self._lock:
            number = self._head
            slot = number % NUM_SLOTS
            channel = call.channel
            self._channel_of[slot] = channel
            count = self._counts[channel] = self._counts[channel] + 1
            now = time.time_ns()
            call.pack_into(self._bytes, self._slots[slot], number, count, now, 0, call.encoded)
            self._words[self._count_words[channel]] = count
            self._head = number + 1
            self._publish()
        return number

    def retract(self, number: int) -> None:
        """Take back the record that was entered last, because torch refused the operation."""
        with self._lock:
            channel = self._channel_of[number % NUM_SLOTS]
            self._counts[channel] -= 1
            self._words[self._count_words[channel]] = self._counts[channel]
            if self._head == number + 1:
                self._head = number
            else:
                self.give_up()  # another thread came between: the order is not known
            self._publish()

    def block(self, number: int) -> None:
        """Note that the calling thread waits for record ``number`` from now on."""
        with self._lock:
            waiting = self._waiting
            waiting.append(number)
            if len(waiting) > 1 or _thread._count() > _OUR_THREADS:
                self._note_threads()
            else:
                self._words[MARKS] = number
                self._free_threads = 0
            self._publish()

    def unblock(self, number: int) -> None:
        """Note that the wait for record ``number`` is over."""
        with self._lock:
            self._waiting.remove(number)
            if self._waiting:
                self._note_threads()
            if self._head - number <= NUM_SLOTS:  # else the slot is another record's by now
                self._words[(self._slots[number % NUM_SLOTS] + LEFT_AT) // 8] = time.time_ns()
            self._publish()

    def give_up(self) -> None:
        """Say that the counts are not to be relied on from now on."""
        self._words[OVERFLOW] = 1

    def _publish(self) -> None:
        moves = self._moves = self._moves + 1
        self._pack_header(self._bytes, 0, self._free_threads, len(self._waiting), self._head, moves)

    def _note_threads(self) -> None:
        """Write down what several threads wait for, and how many others may communicate."""
        for index, number in enumerate(self._waiting[:MAX_WAITING], MARKS):
            self._words[index] = number
        num_shown = min(len(self._waiting), MAX_WAITING)
        # Threads that Python's threading did not start may wait as well.
        self._free_threads = max(0, num_communicating_threads() - num_shown)

    def _open_channel(self, text: str) -> int:
        """Give a new channel its place in the page; return its index."""
        index = len(self._counts)
        data = text.encode()
        if index == NUM_CHANNELS or len(data) > CHANNEL_BYTES - 8:
            self._words[OVERFLOW] = 1  # positions are not known from now on
            index = min(index, NUM_CHANNELS - 1)
            data = b"collective|?||-1|0"
        at = self._channel_at(index)
        if index == len(self._counts):
            self._counts.append(0)
            self._count_words.append(at // 8)
        self._bytes[at + 8 : at + CHANNEL_BYTES] = data.ljust(CHANNEL_BYTES - 8, b"\0")
        self._words[CHANNELS] = len(self._counts)
        return index


def num_communicating_threads() -> int:
    """Number of this process's Python threads that may communicate with other ranks."""
    if threading.active_count() == 1:
        return 1
    return sum(
        not any(harmless in thread.name for harmless in _HARMLESS)
        for thread in threading.enumerate()
    )
