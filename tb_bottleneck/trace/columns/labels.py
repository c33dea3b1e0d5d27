"""Interns the kind, name and thread of an event together, as one number: the label.

A recording has about a hundred events per combination of kind, name and thread. Three separate lookups take twice as
long as one.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.sources.trace_event import Event, decode_event
from tb_bottleneck.trace.columns.number_columns import narrow
from tb_bottleneck.trace.kernel_names import identifiers
from tb_bottleneck.trace.kinds import Kind, kind_of_row
from tb_bottleneck.trace.table import Bools, Ints

# Longer names are cut, because names are displayed and a trace may contain a name of several megabytes.
MAX_NAME = 2_000
MESSAGE_OPERATOR = "record_param_comms"
"""The name of the operator that has the arguments of a collective."""

# The lowest bits of a label are its kind, so that the kinds of a batch are known before the recording is complete.
_KIND_BITS = (len(Kind) - 1).bit_length()


_FIELDS = (b'"cat":', b'"name":', b'"pid":', b'"tid":')


class Thread(Record, frozen=True):
    """A host thread, or a stream of a device."""

    process: str
    thread: str
    name: str


class Labels(dict[tuple[Any, ...], int]):
    """A dict from (category, name, process, thread), as written in the file, to a label: a number for all four.

    Looking up a new key adds a label.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: defaultdict[str, int] = defaultdict(count().__next__)
        self._threads: defaultdict[tuple[str, str], int] = defaultdict(count().__next__)
        self._name_of: list[int] = []
        self._thread_of: list[int] = []
        self._messages: list[int] = []

    def __missing__(self, key: tuple[Any, ...]) -> int:
        category, name, process, thread = key
        kind = kind_of_row(category or "", name)
        label = len(self._name_of) << _KIND_BITS | kind
        self._name_of.append(self._names[identifiers(clean(name))[:MAX_NAME]])
        if name == MESSAGE_OPERATOR or kind == Kind.KERNEL:
            self._messages.append(label)
        self._thread_of.append(self._threads[id_text(process), id_text(thread)])
        # The key would keep long texts in memory, and only their beginnings are used.
        if not any(isinstance(part, str) and len(part) > MAX_NAME for part in key):
            self[key] = label
        return label

    def of(self, events: Sequence[Any]) -> Ints:
        """Returns the label of each event."""
        return np.fromiter([self[event.cat, event.name, event.pid, event.tid] for event in events], np.int64)

    def have_messages(self, labels: Ints) -> Bools:
        """Returns a mask of `labels`: True for labels of MESSAGE_OPERATOR and of kernels.

        Only these events can have the arguments of a collective.
        """
        return np.isin(labels, self._messages) if self._messages else np.zeros(len(labels), np.bool_)

    def thread(self, process: object, thread: object) -> int:
        """Returns the index in `threads()` of the thread with these ids. Adds the thread if it is new."""
        return self._threads[id_text(process), id_text(thread)]

    def columns(self, labels: Ints) -> dict[str, Ints]:
        """Returns the columns "kind", "name" (row of names) and "thread" (row of threads) for an array of labels."""
        row = labels >> _KIND_BITS
        name, thread = (narrow(np.array(column, np.int64)) for column in (self._name_of, self._thread_of))
        return {"kind": narrow(kinds_of(labels)), "name": name[row], "thread": thread[row]}

    def names(self) -> tuple[str, ...]:
        """Returns the interned names in order of their rows. The names are untrusted text."""
        return tuple(self._names)

    def threads(self, thread_names: dict[tuple[str, str], str]) -> tuple[Thread, ...]:
        """Returns the interned threads in order of their rows.

        `thread_names` maps (process, thread), as `id_text` writes them, to the recorded name of the thread.
        """
        return tuple(Thread(*key, thread_names.get(key, "")) for key in self._threads)


def kinds_of(labels: Ints) -> Ints:
    """Returns the kind of each label."""
    return labels & ((1 << _KIND_BITS) - 1)


def id_text(value: object) -> str:
    """Returns a process or thread id as text, the same for 7, 7.0 and "7"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else clean(value)


def clean(name: object) -> str:
    """Returns `name` as text that UTF-8 can encode: lone surrogates, which JSON can contain, are replaced.

    The text is cut to MAX_NAME characters. It is empty for None.
    """
    return str(name)[:MAX_NAME].encode("utf-8", "replace").decode("utf-8") if name is not None else ""


def event_of(key: bytes | None) -> Event:
    """Returns an event with only the category, name, process and thread in `key`, which the native scanner makes."""
    parts = zip(_FIELDS, (key or b"\0\0\0").split(b"\0"), strict=True)
    return decode_event(b"{" + b",".join([field + part for field, part in parts if part]) + b"}")
