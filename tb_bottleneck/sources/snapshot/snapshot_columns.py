"""The columns of an allocator snapshot, made from the values of the pickle or JSON.

The keys are those that torch/csrc/cuda/Module.cpp and torch/cuda/memory.py of torch 2.13 write. torch added them over
several releases, so a missing key is normal. Each distinct frame and stack is stored once: events of one call site
share a stack.
"""

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ACTIONS = (
    "other", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "snapshot", "oom",
)  # fmt: skip
STATES = ("inactive", "active_allocated", "active_pending_free")
NO_STACK = 0
MAX_DEVICES = MAX_SETTINGS = 64
MAX_STACK_FRAMES = 1_000
MAX_TEXT = 500
MAX_ANNOTATIONS = 1_000_000
_LARGEST = 1 << 62
MOST_BYTES = 1 << 48
"""The largest size in bytes: 256 TiB, more than any device has. With this limit, sums of sizes stay within 64 bits."""
MOST_US = 1 << 52
"""The latest time in us since 1970, in the year 2112. As ns, this time fits into 64 bits."""
_MOST = {"time_us": MOST_US} | dict.fromkeys(("size", "requested", "total", "allocated", "active"), MOST_BYTES)


@dataclass(frozen=True)
class Frame:
    """One frame of a stack. Untrusted text."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Annotation:
    """The start or the end of a record_function scope: the start if `begins` is True. `device` is the index of the
    device, and `time_us` the time in us since 1970."""

    name: str
    begins: bool
    device: int
    time_us: int


class _Table:
    """Integer columns of equal length, to which rows are added."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._values = array("q")

    def __len__(self) -> int:
        return len(self._values) // len(self._names)

    def add(self, *row: int) -> None:
        self._values.extend(row)

    def add_columns(self, *columns: list[int]) -> None:
        self._values.frombytes(np.column_stack([np.array(column, np.int64) for column in columns]).tobytes())

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Returns the columns by name, with impossible sizes and times limited."""
        table = np.array(self._values, np.int64).reshape(-1, len(self._names))
        return {
            name: np.clip(column, 0, _MOST[name]) if name in _MOST else column.copy()
            for name, column in zip(self._names, table.T, strict=True)
        }


class SnapshotColumns:
    """The records of a snapshot as columns: trace entries, segments and blocks; and annotations.

    A trace entry is one recorded event of the allocator. In the columns, `action` is an index into ACTIONS, `state` an
    index into STATES, `segment` a row of `segments`, and `stack` a number of `stacks`, which maps the numbers of frames
    to the number of their stack. Sizes are in bytes. The added values must not be changed or dropped before the last
    call, because frames are recognised by their identity.
    """

    def __init__(self) -> None:
        self.entries = _Table("device", "action", "address", "size", "stream", "time_us", "stack")
        self.segments = _Table("device", "address", "total", "allocated", "active", "stream", "pool", "large")
        self.blocks = _Table("segment", "address", "size", "requested", "state", "stack")
        self.annotations: list[Annotation] = []
        self.frames: dict[Frame, int] = {}
        self.stacks: dict[tuple[int, ...], int] = {(): NO_STACK}
        self._of_frames: dict[tuple[int, ...], int] = {}
        self._of_frame: dict[int, int] = {}

    def add_entries(self, traces: Any) -> None:
        """Adds the trace entries in `traces`, a list of entries per device."""
        for device, items in enumerate(_list(traces)[:MAX_DEVICES]):
            entries = [item for item in _list(items) if type(item) is dict and "action" in item]
            addresses = [entry.get("addr", entry.get("device_free")) for entry in entries]
            self.entries.add_columns(
                [device] * len(entries),
                [_number_of(entry["action"], _ACTION) for entry in entries],
                list(map(_address, addresses)),
                *(_whole_numbers([entry.get(key) for entry in entries]) for key in ("size", "stream", "time_us")),
                [self._stack(entry.get("frames")) for entry in entries],
            )

    def add_segments(self, segments: Any) -> None:
        """Adds the segments in the list `segments`, with their blocks."""
        for segment in _list(segments):
            if type(segment) is not dict or "total_size" not in segment or "blocks" not in segment:
                continue
            pool = segment.get("segment_pool_id", (0, 0))
            private = isinstance(pool, tuple | list) and any(_whole(part) for part in pool[:2])
            number, address = len(self.segments), _address(segment.get("address"))
            self.segments.add(
                _whole(segment.get("device")),
                address,
                *(_whole(segment.get(key)) for key in ("total_size", "allocated_size", "active_size", "stream")),
                int(private),
                int(segment.get("segment_type") == "large"),
            )
            for block in _list(segment["blocks"]):
                if type(block) is dict:
                    address = self._add_block(number, block, address)

    def _add_block(self, segment: int, block: dict[Any, Any], address: int) -> int:
        """Adds `block`, a block of the segment with the number `segment`. `address` is used if `block` states no
        address, as in old files. Returns the address after the block."""
        size, begin = _whole(block.get("size")), _address(block.get("address", address))
        frames, history = block.get("frames"), _list(block.get("history"))
        if frames is None and history and type(history[0]) is dict:
            frames = history[0].get("frames")
        requested, state = _whole(block.get("requested_size", size)), _number_of(block.get("state"), _STATE)
        self.blocks.add(segment, begin, size, requested, state, self._stack(frames))
        return begin + size

    def add_annotations(self, annotations: Any) -> None:
        """Adds the first MAX_ANNOTATIONS annotations of the list `annotations`."""
        for item in _list(annotations)[:MAX_ANNOTATIONS]:
            if type(item) is dict and "stage" in item and "time_us" in item:
                device, time = _whole(item.get("device")), min(max(_whole(item["time_us"]), 0), MOST_US)
                self.annotations.append(Annotation(_text(item.get("name")), item["stage"] == "START", device, time))

    def _stack(self, frames: Any) -> int:
        """Returns the number of a stack, given as a list of frames; NO_STACK for other values."""
        if type(frames) is not list:
            return NO_STACK
        identity = tuple(map(id, frames[:MAX_STACK_FRAMES]))
        number = self._of_frames.get(identity)
        if number is None:
            key = tuple([self._frame(frame) for frame in frames[:MAX_STACK_FRAMES]])
            number = self._of_frames[identity] = self.stacks.setdefault(key, len(self.stacks))
        return number

    def _frame(self, frame: Any) -> int:
        number = self._of_frame.get(id(frame))
        if number is None:
            facts = frame if type(frame) is dict else {}
            known = Frame(_text(facts.get("filename")), _whole(facts.get("line")), _text(facts.get("name")))
            number = self._of_frame[id(frame)] = self.frames.setdefault(known, len(self.frames))
        return number


def settings_of(settings: Any) -> dict[str, Any]:
    """Returns the first MAX_SETTINGS settings of the allocator whose values are texts, numbers or booleans."""
    pairs = list(settings.items())[:MAX_SETTINGS] if isinstance(settings, dict) else []
    return {
        _text(key): _text(value) if isinstance(value, str) else _whole(value) if type(value) is int else value
        for key, value in pairs
        if isinstance(key, str) and isinstance(value, str | int | float)
    }


_ACTION = {name: number for number, name in enumerate(ACTIONS)}
_STATE = {name: number for number, name in enumerate(STATES)} | {"active_awaiting_free": 2}


def _number_of(name: Any, numbers: dict[str, int]) -> int:
    return numbers.get(name, 0) if isinstance(name, str) else 0


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _whole(value: Any) -> int:
    """Returns `value`, or 0 if it is not an integer or is out of range."""
    return value if type(value) is int and -_LARGEST < value < _LARGEST else 0


def _whole_numbers(values: list[Any]) -> list[int]:
    """Returns `_whole` of each value. Snapshots have millions of valid values, which need no call each."""
    if set(map(type, values)) == {int} and min(values) > -_LARGEST and max(values) < _LARGEST:
        return values
    return list(map(_whole, values))


def _address(value: Any) -> int:
    """Returns an address as a signed 64-bit integer, because some devices set the highest bit; 0 if it is invalid."""
    if type(value) is not int or not 0 <= value < 1 << 64:
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: Any) -> str:
    return value[:MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
