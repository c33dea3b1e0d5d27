"""What an event is, in one number: its kind, its name and its thread are interned together.

A recording has a hundred events to each such combination; to look up the three one by one took twice as long.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from tb_bottleneck.trace.kinds import Kind, kind_of
from tb_bottleneck.trace.table import Ints

# A name longer than this is kept by its beginning: names are shown to people, and a trace may hold one of megabytes.
MAX_NAME = 2_000

# The lowest bits of a label are its kind, so that a batch's kinds are known before the recording is complete.
_KIND_BITS = (len(Kind) - 1).bit_length()


@dataclass(frozen=True)
class Thread:
    """A row of the trace: a host thread, or a stream of a device."""

    process: str
    thread: str
    name: str


class Labels(dict[tuple[Any, ...], int]):
    """Labels by category, name, process and thread as they stand in the file. Asking for a new one adds it."""

    def __init__(self) -> None:
        super().__init__()
        self._names: defaultdict[str, int] = defaultdict(count().__next__)
        self._threads: defaultdict[tuple[str, str], int] = defaultdict(count().__next__)
        self._name_of: list[int] = []
        self._thread_of: list[int] = []

    def __missing__(self, key: tuple[Any, ...]) -> int:
        category, name, process, thread = key
        label = len(self._name_of) << _KIND_BITS | kind_of(category or "")
        self._name_of.append(self._names[clean(name)])
        self._thread_of.append(self._threads[id_text(process), id_text(thread)])
        # The key keeps whole texts alive, of which but the beginnings are used.
        if not any(isinstance(part, str) and len(part) > MAX_NAME for part in key):
            self[key] = label
        return label

    def of(self, events: Sequence[Any]) -> Ints:
        """The label of each event."""
        return np.fromiter([self[event.cat, event.name, event.pid, event.tid] for event in events], np.int64)

    def columns(self, labels: Ints) -> dict[str, Ints]:
        """What the labels stand for: kind, name (a row of names) and thread (a row of threads)."""
        row = labels >> _KIND_BITS
        columns = {"name": np.array(self._name_of, np.int64)[row], "thread": np.array(self._thread_of, np.int64)[row]}
        return {"kind": kinds_of(labels).astype(np.int64), **columns}

    def names(self) -> tuple[str, ...]:
        """The interned names; hostile text."""
        return tuple(self._names)

    def threads(self, named: dict[tuple[str, str], str]) -> tuple[Thread, ...]:
        """The interned threads, with their names by process and thread where they have one."""
        return tuple(Thread(*key, named.get(key, "")) for key in self._threads)


def kinds_of(labels: Ints) -> Ints:
    """The kind of each label."""
    return labels & ((1 << _KIND_BITS) - 1)


def id_text(value: object) -> str:
    """A process or thread id as text; the same for 7, 7.0 and "7"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else clean(value)


def clean(name: object) -> str:
    """A name that can be encoded: lone surrogates, which JSON can spell, are replaced."""
    return str(name)[:MAX_NAME].encode("utf-8", "replace").decode("utf-8") if name is not None else ""
