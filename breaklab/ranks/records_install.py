"""Makes a rank write its records: wraps what every torch.distributed function ends up calling.

The wrappers sit on the methods of torch's ``ProcessGroup`` and ``Work`` classes, so it does not
matter how or when the lab imported ``all_reduce``, and object collectives, DDP's Python part and
the like are seen too. Collectives that C++ issues are not; see :mod:`breaklab.ranks.records_trace`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from breaklab.i18n import _
from breaklab.ranks.records import PID, Page
from breaklab.ranks.records_texts import Cache, Places, first_tensor, tensor_texts
from breaklab.ranks.records_trace import serve_traces
from breaklab.ranks.records_writer import Call, ChannelKey, GroupChannels, Writer

# Method of ProcessGroup: the name people know, and which argument holds the rank's own tensors.
COLLECTIVES: dict[str, tuple[str, int | None]] = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce_coalesced", 0),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "allgather": ("all_gather", 1),
    "_allgather_base": ("all_gather_single", 1),
    "all_gather_single": ("all_gather_single", 1),
    "allgather_coalesced": ("all_gather_coalesced", 1),
    "allgather_into_tensor_coalesced": ("all_gather_coalesced", 1),
    "all_gather_single_coalesced": ("all_gather_coalesced", 1),
    "gather": ("gather", 1),
    "scatter": ("scatter", 0),
    "reduce_scatter": ("reduce_scatter", 0),
    "_reduce_scatter_base": ("reduce_scatter_single", 1),
    "reduce_scatter_single": ("reduce_scatter_single", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_coalesced", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter_coalesced", 1),
    "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all_single", 1),
    "all_to_all_single": ("all_to_all_single", 1),
    "barrier": ("barrier", None),
    "monitored_barrier": ("monitored_barrier", None),
}
POINT_TO_POINT = {"send": "send", "recv": "recv", "recv_anysource": "recv_any"}
_COLLECTIVE: ChannelKey = ("collective", -1, 0)
_UNEVEN = "all_to_all"  # its sizes may differ between ranks
_ROOTED = ("broadcast", "reduce", "gather", "scatter")

Method = Callable[..., Any]
# From group and arguments of a call: channel, operation, tensors, global rank of the root or -1.
Describe = Callable[[GroupChannels, Any], tuple[ChannelKey, str, Any, int]]


def install(page: Page) -> str:
    """Record this process's communication in ``page``, from now on; needs torch to be installed.

    Returns:
        ``""``, or why this torch's communication can't be recorded.
    """
    try:
        from torch.distributed import ProcessGroup, Work

        recorder = _Recorder(page)
        for method, (operation, argument) in COLLECTIVES.items():
            if hasattr(ProcessGroup, method):
                blocks = method == "monitored_barrier"
                _replace(
                    ProcessGroup, method, recorder.call, _collective(operation, argument), blocks
                )
        for method, kind in POINT_TO_POINT.items():
            _replace(ProcessGroup, method, recorder.call, _message(kind), False)
        _replace(Work, "wait", recorder.wait)
    except (ImportError, AttributeError, TypeError) as error:
        return _("this torch does not let its communication be recorded: {error}").format(
            error=error
        )
    os.register_at_fork(after_in_child=recorder.stop)  # a loader's worker must not write here
    page.words[PID] = os.getpid()
    serve_traces(page)
    return ""


def _replace(owner: type, method: str, wrap: Callable[..., Method], *args: Any) -> None:
    original = getattr(owner, method)
    wrapper = wrap(original, *args)
    wrapper.__name__ = method
    wrapper.__doc__ = original.__doc__
    setattr(owner, method, wrapper)


class _Recorder:
    """Wraps torch's methods so that each call is written down."""

    def __init__(self, page: Page) -> None:
        self._writer = Writer(page)
        self._places = Places()
        self._calls: Cache = Cache()  # what was encoded, by all that it depends on
        self._on = True
        self._groups: dict[int, tuple[Any, GroupChannels | None]] = {}  # by id: weak reference
        self._generations: dict[str, int] = {}
        self._last: tuple[Any, int] = (None, 0)  # the newest Work, and its record's number
        self._works: dict[int, tuple[Any, int]] = {}  # older ones, by id: weak reference, number

    def stop(self) -> None:
        """Record nothing more in this process."""
        self._on = False

    def call(self, original: Method, describe: Describe, blocks: bool) -> Method:
        """Return the wrapper of a method that issues an operation; ``blocks`` if it waits too."""

        def issue(pg: Any, *args: Any, **kwargs: Any) -> Any:
            group = self._group(pg) if self._on else None
            number = None if group is None else self._enter(group, describe, args)
            if number is None:
                return original(pg, *args, **kwargs)
            return self._issue(number, blocks, original, pg, args, kwargs)

        return issue

    def _enter(self, group: GroupChannels, describe: Describe, args: Any) -> int | None:
        """Write the record of a call; return its number."""
        try:
            key, operation, tensors, root = describe(group, args)
            tensor, several = first_tensor(tensors)
            what = None if tensor is None else (tensor.shape, tensor.dtype)
            place = self._places.find()
            channel = self._writer.channel(group, key)
            full_key = (operation, channel, place, what, several, root)
            call = self._calls.get(full_key)
            if call is None:
                comparable = what and not several and not operation.startswith(_UNEVEN)
                size = tensor.numel() * tensor.element_size() if comparable else -1
                texts = tensor_texts(*what) if what else b"\x1f"
                texts = b"\x1f".join((operation.encode(), texts, self._places.text(place)))
                call = self._calls.put(full_key, Call(channel, texts, size, root))
            return self._writer.enter(call)
        except Exception:  # a call that is not as expected: training must not suffer from us
            self._writer.give_up()
            self._on = False
            return None

    def wait(self, original: Method) -> Method:
        """Return the wrapper of ``Work.wait``."""

        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            number = self._take(work) if self._on else None
            # A wait with a time limit of its own may be a legal look at whether it has come.
            if number is None or args or kwargs:
                return original(work, *args, **kwargs)
            self._writer.block(number)
            try:
                return original(work)
            finally:
                self._writer.unblock(number)

        return wait

    def _issue(
        self, number: int, blocks: bool, original: Method, pg: Any, args: Any, kwargs: Any
    ) -> Any:
        """Call torch's method for record ``number``; remember the Work to wait for."""
        if blocks:
            self._writer.block(number)
        try:
            work = original(pg, *args, **kwargs)
        except BaseException:
            if not blocks:
                self._writer.retract(number)  # torch refused it; it was never issued
            raise
        finally:
            if blocks:
                self._writer.unblock(number)
        if work is not None:
            self._remember(work, number)
        return work

    def _remember(self, work: Any, number: int) -> None:
        (older, older_number), self._last = self._last, (work, number)
        if older is not None:
            key = id(older)
            forget = partial(self._works.pop, key)
            self._works[key] = (weakref.ref(older, forget), older_number)

    def _take(self, work: Any) -> int | None:
        """Return the record's number of a Work that is being waited for; None if it has none."""
        last, number = self._last
        if last is work:
            self._last = (None, 0)
            return number
        entry = self._works.pop(id(work), None)
        return entry[1] if entry is not None and entry[0]() is work else None

    def _group(self, pg: Any) -> GroupChannels | None:
        """What is known of a process group; None for one whose operations do not pair as gloo's."""
        entry = self._groups.get(id(pg))
        if entry is None or entry[0]() is not pg:
            entry = self._groups[id(pg)] = (weakref.ref(pg), self._describe(pg))
        return entry[1]

    def _describe(self, pg: Any) -> GroupChannels | None:
        import torch.distributed as dist

        try:
            if "gloo" not in dist.get_backend(pg):
                return None
            members = tuple(dist.get_process_group_ranks(pg))
        except (KeyError, ValueError):  # torch does not know it, so its order can't be told
            self._writer.give_up()
            return None
        # After destroy_process_group torch gives out the same names again.
        name = pg.group_name
        generation = self._generations[name] = self._generations.get(name, 0) + 1
        return GroupChannels(name if generation == 1 else f"{name}'{generation}", members)


def _collective(operation: str, argument: int | None) -> Describe:
    rooted = operation in _ROOTED

    def describe(group: GroupChannels, args: Any) -> tuple[ChannelKey, str, Any, int]:
        tensors = None if argument is None else args[argument]
        return _COLLECTIVE, operation, tensors, _root(args, group) if rooted else -1

    return describe


def _message(kind: str) -> Describe:
    """Describe ``(tensors, peer, tag)``, or ``(tensors, tag)`` of a receive from anyone."""
    any_peer = kind == "recv_any"

    def describe(group: GroupChannels, args: Any) -> tuple[ChannelKey, str, Any, int]:
        peer = -1 if any_peer else group.members[args[1]]
        return (kind, peer, int(args[1 if any_peer else 2])), kind, args[0], -1

    return describe


def _root(args: tuple[Any, ...], group: GroupChannels) -> int:
    """The global rank of a collective's root, from its options or its plain argument."""
    root = getattr(args[-1], "rootRank", args[-1])
    return group.members[root] if isinstance(root, int) and root < len(group.members) else -1
