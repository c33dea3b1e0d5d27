"""The columns of an allocator snapshot, filled while the pickle or JSON is read.

The keys are those that torch/csrc/cuda/Module.cpp and torch/cuda/memory.py of torch 2.13 write. torch added them over
several releases, so a missing key is normal. Each distinct frame and stack is stored once: events of one call site
share a stack.
"""

from dataclasses import dataclass
from typing import Any

from tb_bottleneck.base.errors import TooLarge
from tb_bottleneck.sources.snapshot.byte_source import Columns
from tb_bottleneck.sources.snapshot.memo import Memo, StackNumber

ACTIONS = (
    "other", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "snapshot", "oom",
)  # fmt: skip
STATES = ("inactive", "active_allocated", "active_pending_free")
NO_STACK = 0
MAX_ENTRIES = 40_000_000
MAX_BLOCKS = 10_000_000
MAX_STACKS = 2_000_000
MAX_FRAMES = 1_000_000
MAX_STACK_FRAMES = 1_000
MAX_TEXT = 500
MAX_ANNOTATIONS = 1_000_000
_LARGEST = 1 << 62
MOST_BYTES = 1 << 48
"""The largest size in bytes: 256 TiB, more than any device has. With this limit, sums of sizes stay within 64 bits."""
MOST_US = 1 << 52
"""The latest time in us since 1970, in the year 2112. As ns, this time fits into 64 bits."""


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


class SnapshotColumns:
    """Stores the records of a snapshot as columns: trace entries, segments and blocks; and annotations.

    A trace entry is one recorded event of the allocator. In the columns, `action` is an index into ACTIONS, `state` an
    index into STATES, `segment` a row of `segments`, and `stack` a number of `stacks`, which maps the numbers of frames
    to the number of their stack. Sizes are in bytes. `seen` is True after the first trace entry or segment."""

    def __init__(self) -> None:
        calls = ("device", "action", "address", "size", "stream", "time_us", "stack")
        self.entries = Columns(*calls, limit=MAX_ENTRIES, most={"size": MOST_BYTES, "time_us": MOST_US})
        segments = ("device", "address", "total", "allocated", "active", "stream", "pool", "large")
        sizes = dict.fromkeys(("total", "allocated", "active"), MOST_BYTES)
        self.segments = Columns(*segments, limit=MAX_BLOCKS, most=sizes)
        blocks = ("segment", "address", "size", "requested", "state", "stack")
        self.blocks = Columns(*blocks, limit=MAX_BLOCKS, most={"size": MOST_BYTES, "requested": MOST_BYTES})
        self.annotations: list[Annotation] = []
        self.frames: dict[Frame, int] = {}
        self.stacks: dict[tuple[int, ...], int] = {(): NO_STACK}
        self.stack_of_bytes: dict[bytes, int] = {}
        self.seen = False
        self._of_list: dict[int, tuple[list[Any], int]] = {}
        self._of_frame: dict[int, tuple[Any, int]] = {}

    def take(self, path: str, group: int, items: list[Any]) -> list[Any]:
        """Stores the trace entries, segments and annotations in `items`. Returns the other items.

        `path` and `group` are as in `Consumer.take`. For trace entries, `group` is the index of the device."""
        rest = []
        for item in items:
            if type(item) is not dict:
                rest.append(item)
            elif "action" in item:
                if path == "device_traces":
                    self._entry(group, item)
            elif "total_size" in item and "blocks" in item:
                if path in ("segments", ""):
                    self._segment(item)
            elif "stage" in item and "time_us" in item:
                self._annotation(item)
            else:
                rest.append(item)
        return rest

    def action_of(self, name: Any) -> int:
        """Returns the number of the action `name` in ACTIONS; 0 ("other") if it is unknown. Sets `seen`."""
        self.seen = True
        return _ACTION.get(name, 0) if isinstance(name, str) else 0

    def new_stack(self, value: bytes, memo: Memo) -> int:
        """Returns the number of the stack that `value` describes: the opcodes of a list of references to frames in
        `memo`."""
        frames = [memo.get(index) for index in _references(value[2:-1])]
        number = self._number([self._frame(frame) for frame in frames[:MAX_STACK_FRAMES]])
        if len(self.stack_of_bytes) < MAX_STACKS:
            self.stack_of_bytes[value] = number
        return number

    def number_of(self, frames: Any) -> int:
        """Returns the number of a stack, given as a list of frames or as a StackNumber; NO_STACK for other values."""
        if type(frames) is StackNumber:
            return frames.number
        if type(frames) is not list or not frames:
            return NO_STACK
        known = self._of_list.get(id(frames))
        if known is not None and known[0] is frames:
            return known[1]
        number = self._number([self._frame(frame) for frame in frames[:MAX_STACK_FRAMES]])
        if len(self._of_list) < MAX_STACKS:
            self._of_list[id(frames)] = (frames, number)  # keeps the list, so that its id is not used again
        return number

    def _number(self, frames: list[int]) -> int:
        key = tuple(frames)
        if key not in self.stacks and len(self.stacks) >= MAX_STACKS:
            return NO_STACK
        return self.stacks.setdefault(key, len(self.stacks))

    def _frame(self, frame: Any) -> int:
        seen = self._of_frame.get(id(frame))
        if seen is not None and seen[0] is frame:
            return seen[1]
        number = self._new_frame(frame if type(frame) is dict else {})
        self._of_frame[id(frame)] = (frame, number)  # keeps the frame, so that its id is not used again
        return number

    def _new_frame(self, frame: dict[Any, Any]) -> int:
        known = Frame(_text(frame.get("filename")), _whole(frame.get("line")), _text(frame.get("name")))
        if len(self._of_frame) >= MAX_FRAMES:
            raise TooLarge(f"The snapshot has more than {MAX_FRAMES:,} different frames, which is the limit.")
        return self.frames.setdefault(known, len(self.frames))

    def _entry(self, device: int, entry: dict[Any, Any]) -> None:
        self.entries.add(
            device,
            self.action_of(entry.get("action")),
            _address(entry.get("addr", entry.get("device_free"))),
            _whole(entry.get("size")),
            _whole(entry.get("stream")),
            _whole(entry.get("time_us")),
            self.number_of(entry.get("frames")),
        )
        entry.clear()

    def _segment(self, segment: dict[Any, Any]) -> None:
        self.seen = True
        pool = segment.get("segment_pool_id", (0, 0))
        private = isinstance(pool, tuple | list) and any(_whole(part) for part in pool[:2])
        number = len(self.segments)
        self.segments.add(
            _whole(segment.get("device")),
            _address(segment.get("address")),
            *(_whole(segment.get(key)) for key in ("total_size", "allocated_size", "active_size", "stream")),
            int(private),
            int(segment.get("segment_type") == "large"),
        )
        address = _address(segment.get("address"))
        blocks = segment.get("blocks")
        for block in blocks if type(blocks) is list else ():
            if type(block) is dict:
                address = self._block(number, block, address)
        segment.clear()

    def _block(self, segment: int, block: dict[Any, Any], address: int) -> int:
        """Appends `block`, a block of the segment with the number `segment`. `address` is used if `block` states no
        address, as in old files. Returns the address after the block."""
        size = _whole(block.get("size"))
        begin = _address(block.get("address", address))
        frames = block.get("frames")
        history = block.get("history")
        if frames is None and type(history) is list and history and type(history[0]) is dict:
            frames = history[0].get("frames")
        state = block.get("state")
        self.blocks.add(
            segment,
            begin,
            size,
            _whole(block.get("requested_size", size)),
            _STATE.get(state, 0) if isinstance(state, str) else 0,
            self.number_of(frames),
        )
        return begin + size

    def _annotation(self, item: dict[Any, Any]) -> None:
        if len(self.annotations) < MAX_ANNOTATIONS:
            device, time = _whole(item.get("device")), min(max(_whole(item.get("time_us")), 0), MOST_US)
            self.annotations.append(Annotation(_text(item.get("name")), item.get("stage") == "START", device, time))


_ACTION = {name: number for number, name in enumerate(ACTIONS)}
_STATE = {name: number for number, name in enumerate(STATES)} | {"active_awaiting_free": 2}


def _references(data: bytes) -> list[int]:
    """Returns the indices into the memo from `data`, the opcodes of consecutive references. A mark may come before the
    references."""
    at, found = int(data[:1] == b"("), []
    while at < len(data):
        size = 2 if data[at] == _SHORT_REFERENCE else 5
        found.append(int.from_bytes(data[at + 1 : at + size], "little"))
        at += size
    return found


_SHORT_REFERENCE = ord("h")


def _whole(value: Any) -> int:
    """Returns `value`, or 0 if it is not an integer or is out of range."""
    return value if type(value) is int and -_LARGEST < value < _LARGEST else 0


def _address(value: Any) -> int:
    """Returns an address as a signed 64-bit integer, because some devices set the highest bit; 0 if it is invalid."""
    if type(value) is not int or not 0 <= value < 1 << 64:
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: Any) -> str:
    return value[:MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
