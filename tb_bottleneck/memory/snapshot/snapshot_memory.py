"""The memory of one device in an allocator snapshot: blocks, categories and the state at the peak.

A snapshot has the segments (memory that the allocator requested from the driver) and the blocks in them at the end of
the recording, and a ring buffer of the last allocator calls, the history. The state at an earlier time is the state at
the end, minus the effects of the calls after that time.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.memory.block_roles import Calls, Role, caches, categories_of_calls
from tb_bottleneck.memory.blocks import ROUNDING, bytes_before
from tb_bottleneck.memory.categories import CATEGORIES, INDEX, Category, EarlierBlocks, MemoryAccount, earlier_blocks
from tb_bottleneck.memory.recorded_memory import RecordedMemory
from tb_bottleneck.memory.sites import Place, Site, group_sites
from tb_bottleneck.memory.snapshot.snapshot_categories import categories_of_earlier, without_replaced
from tb_bottleneck.memory.snapshot.snapshot_places import (
    SnapshotPlaces,
    attention_nodes,
    attention_stacks,
    cast_stacks,
    roles_of,
)
from tb_bottleneck.memory.snapshot.weight_sets import WeightSets, categories_by_size, has_larger_copies, weight_sets
from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.table import Bools, Ints, Rows

_STEP = re.compile(r"^Optimizer\.step#")
_CALLS = ("alloc", "free_completed")
_GROWS, _SHRINKS = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")
MIN_WEIGHTS = 8
"""Minimum number of blocks of the weights of a model. A choice."""
_ACTIVE = 1  # states with at least this index in STATES are in use: all except inactive


@dataclass(frozen=True, eq=False)
class SnapshotMemory(RecordedMemory):
    """The memory of the device with the index `device` in a snapshot."""

    snapshot: AllocatorSnapshot
    device: int

    @cached_property
    def _entries(self) -> dict[str, Ints]:
        """The entries of the history about allocations, frees and changes of segments of this device, in order: a dict
        from column names to values."""
        entries = self.snapshot.entries
        kinds = [ACTIONS.index(name) for name in (*_CALLS, *_GROWS, *_SHRINKS)]
        chosen = (entries["device"] == self.device) & np.isin(entries["action"], kinds)
        return {name: values[chosen] for name, values in entries.items()}

    @cached_property
    def _final(self) -> dict[str, Ints]:
        """The blocks of this device at the end of the recording: a dict from column names to values. The column
        `private` is above 0 for blocks in the private pools of CUDA graphs."""
        segments, blocks = self.snapshot.segments, self.snapshot.blocks
        mine = segments["device"][blocks["segment"]] == self.device if len(blocks["segment"]) else np.zeros(0, np.bool_)
        found = {name: values[mine] for name, values in blocks.items()}
        return {**found, "private": segments["pool"][found["segment"]]}

    @cached_property
    def reserved_at_end(self) -> int:
        """Bytes that the allocator has reserved at the end of the recording: the sum of all segments."""
        segments = self.snapshot.segments
        return int(segments["total"][segments["device"] == self.device].sum())

    @cached_property
    def _changes(self) -> Ints:
        """The bytes that each entry in `_entries` allocates; negative for a free, 0 for entries about segments."""
        action = self._entries["action"]
        rounded = -(-self._entries["size"] // ROUNDING) * ROUNDING
        return np.where(_is(action, "alloc"), rounded, np.where(_is(action, "free_completed"), -rounded, 0))

    @cached_property
    def events(self) -> MemoryEvents:
        """The allocations and frees as memory events. Entries about segments become no events; they only change the
        reserved bytes of the events after them."""
        entries, size = self._entries, self._changes
        action = entries["action"]
        grown = np.where(_is(action, *_GROWS), entries["size"], 0) - np.where(
            _is(action, *_SHRINKS), entries["size"], 0
        )
        reserved = self.reserved_at_end - int(grown.sum()) + np.cumsum(grown)
        allocated = self._active_at_end - int(size.sum()) + np.cumsum(size)
        calls = size != 0
        zeros = np.zeros(int(calls.sum()), np.int64)
        return MemoryEvents(
            # The order of the history is certain, so a damaged time is replaced if it is before an earlier time.
            time=np.maximum.accumulate(entries["time_us"][calls] * NS_PER_US),
            thread=zeros,
            address=entries["address"][calls],
            size=size[calls],
            allocated=allocated[calls],
            reserved=reserved[calls],
            device_type=zeros + 1,
            device=zeros + self.device,
        )

    @property
    def in_use(self) -> Ints:
        """Allocated bytes after each event in `events`."""
        return self.events.allocated

    @cached_property
    def _call_stacks(self) -> Ints:
        """Number of the stack of each event in `events`. A 0 is appended for blocks that are never freed."""
        return np.append(self._entries["stack"][self._changes != 0], 0)

    @cached_property
    def stack(self) -> Ints:
        """Number of the stack of each block in `blocks`: the stack of its allocation, or of its free if the allocation
        was not recorded."""
        return self._call_stacks[np.where(self.blocks.known_begin, self.blocks.opened, self.blocks.closed)]

    @cached_property
    def calls(self) -> Calls:
        """The blocks of the recorded calls, with the roles of their allocations and frees."""
        role = self.roles[self._call_stacks]
        for kind in (self.events.size > 0, self.events.size < 0):
            chosen = np.append(kind, False)
            # If stacks of Python were recorded, a missing stack is of autograd's own thread, which runs no Python code.
            if role[chosen].any():
                role[chosen & (role == Role.UNKNOWN)] = Role.BACKWARD
        opened = np.where(self.blocks.known_begin, role[self.blocks.opened], Role.UNKNOWN)
        return Calls(self.blocks, opened, role[self.blocks.closed], self._update_times(opened))

    @cached_property
    def _active_at_end(self) -> int:
        return int(self._final["size"][self._final["state"] >= _ACTIVE].sum())

    @cached_property
    def _earlier(self) -> dict[str, Ints]:
        """The blocks that exist at the end of the recording and were allocated before the recorded calls: a dict from
        column names to values."""
        blocks, events = self._final, self.events
        alive = self.blocks.known_begin & ~self.blocks.freed
        recorded = np.unique(events.address[self.blocks.opened[alive]])
        earlier = (blocks["state"] >= _ACTIVE) & ~np.isin(blocks["address"], recorded)
        return {name: values[earlier] for name, values in blocks.items()}

    @cached_property
    def roles(self) -> Ints:
        """The Role of each stack of the snapshot."""
        return roles_of(self.snapshot)

    @cached_property
    def category(self) -> Ints:
        """The category of each block in `blocks`, as an index into CATEGORIES."""
        told = categories_of_calls(self.calls)
        told[caches(self.calls, self.stack)] = INDEX[Category.KEPT]
        return told if self.peak_row is None else without_replaced(self.calls, told, self.peak_row)

    def _update_times(self, opened: Ints) -> Ints:
        """Returns the times of the optimizer's steps, in ns; empty if none is found. `opened` has for each block the
        Role of the code that allocated it.

        The times come from annotations. Without annotations, a step is at the first allocation of the optimizer after
        each backward pass or, if the optimizer allocates nothing, at the first allocation of the forward pass after
        it."""
        times = [
            it.time_us * NS_PER_US
            for it in self.snapshot.annotations
            if it.begins and it.device == self.device and _STEP.match(it.name)
        ]
        if times:
            return np.sort(np.array(times, np.int64))
        begin = self.blocks.begin
        backward = np.sort(begin[opened == Role.BACKWARD])
        for role in (Role.OPTIMIZER, Role.FORWARD):
            after = np.sort(begin[opened == role])
            passes = np.searchsorted(backward, after)
            found = after[(np.diff(passes, prepend=0) > 0) & (passes > 0)]
            if len(found):
                return found
        return np.empty(0, np.int64)

    @cached_property
    def edges(self) -> Ints:
        """Times in ns that separate the steps: the first event, the optimizer's steps, and just after the last
        event."""
        time, updates = self.events.time, self.calls.updates
        if len(time):
            updates = updates[(updates > time[0]) & (updates <= time[-1])]
        return np.unique(np.concatenate((time[:1], updates, time[-1:] + 1)))

    @property
    def _asked(self) -> Ints:
        """Requested sizes in bytes of the blocks in `_earlier`, rounded up as the allocator does. They may be smaller
        than the blocks, because the allocator may reuse a larger block for a request."""
        size, requested = self._earlier["size"], self._earlier["requested"]
        return np.where(requested > 0, np.minimum(-(-requested // ROUNDING) * ROUNDING, size), size)

    @cached_property
    def weights(self) -> WeightSets:
        """The parameters of the model by size, derived from the sizes of the blocks."""
        blocks, opened = self.blocks, self.calls.opened
        step = np.searchsorted(self.calls.updates, blocks.begin, side="right")
        backward = opened == Role.BACKWARD
        gradients = blocks.known_begin & (self.category == INDEX[Category.GRADIENTS])
        states = blocks.known_begin & ~blocks.freed & (self.category == INDEX[Category.OPTIMIZER])
        size = blocks.size
        return weight_sets(
            self._asked,
            size[_of_fullest(gradients, step, size)],
            size[states],
            (size[_of_fullest(backward, each, size)] for each in (step, passes_before(opened, blocks.opened))),
        )

    @cached_property
    def _earlier_category(self) -> Ints:
        """The category of each block in `_earlier`, as an index into CATEGORIES."""
        earlier = self._earlier
        told = categories_of_earlier(self.roles[earlier["stack"]])
        told = categories_by_size(self._asked, told == INDEX[Category.BEFORE_RECORDING], self.weights, told)
        told[earlier["private"] > 0] = INDEX[Category.GRAPHS]
        return told

    @cached_property
    def account(self) -> MemoryAccount:
        """The memory at the peak, or at the end of the recording if no allocator calls were recorded. The bytes of the
        categories sum to the reserved bytes."""
        row = self.peak_row
        sums = np.bincount(self._earlier_category, self._earlier["size"], minlength=len(CATEGORIES)).astype(np.int64)
        in_use = int(self._earlier["size"].sum())
        reserved = self.reserved_at_end
        if row is not None:
            sums += self.categories_at_peak
            in_use += int(self.categories_at_peak.sum())
            reserved = int(self.events.reserved[row])
        reserved = max(reserved, in_use)  # a damaged size of a segment may be too small for its blocks
        bytes_of = {category: int(sums[INDEX[category]]) for category in CATEGORIES}
        free = reserved - in_use
        split = min(self._split, free)
        graphs = min(self._idle_graphs, free - split)
        bytes_of[Category.FRAGMENTATION] = split
        bytes_of[Category.GRAPHS] += graphs
        bytes_of[Category.CACHE] = free - split - graphs
        return MemoryAccount(bytes_of, "snapshot", "cuda", in_use, reserved)

    @cached_property
    def unknown_earlier(self) -> EarlierBlocks | None:
        """A summary of the blocks that exist at the end, were allocated before the recorded calls, and have an unknown
        category; None if there are no such blocks."""
        size = self._earlier["size"][self._earlier_category == INDEX[Category.BEFORE_RECORDING]]
        return earlier_blocks(size, bool((self.calls.opened == Role.BACKWARD).any())) if len(size) else None

    @cached_property
    def attention(self) -> Bools:
        """Mask of `blocks`: True for the matrices of attention that is not fused. They are the blocks that the
        attention's softmax allocates, and other blocks of the attention and of its backward pass with the same
        sizes."""
        attends, softmax = attention_stacks(self.snapshot)
        own = self.blocks.known_begin & attends[self.stack]
        sizes = np.unique(self.blocks.size[own & softmax[self.stack]])
        own |= self.blocks.known_begin & attention_nodes(self.snapshot)[self.stack]
        return np.asarray(own & np.isin(self.blocks.size, sizes), np.bool_)

    @cached_property
    def optimizer_temporaries(self) -> Bools:
        """Mask of `blocks`: True for blocks that the optimizer allocates and frees in one step."""
        temporary = self.category == INDEX[Category.TEMPORARIES]
        return np.asarray(temporary & (self.calls.opened == Role.OPTIMIZER), np.bool_)

    @cached_property
    def weight_casts(self) -> Bools:
        """Mask of `blocks`: True for the copies of weights in 16 bits that autocast has at the peak. It also converts
        other tensors, so there is at most one copy per weight, of half its size."""
        own = self.at_peak & self.blocks.known_begin
        own &= cast_stacks(self.snapshot)[self.stack] | (self.calls.closed == Role.END_OF_AUTOCAST)
        copies = np.zeros(len(own), np.bool_)
        for size, count in (self.weights.parameters or Counter(self._asked.tolist())).items():
            half = -(-size // 2 // ROUNDING) * ROUNDING
            copies[np.flatnonzero(own & (self.blocks.size == half) & ~copies)[:count]] = True
        return copies

    @cached_property
    def earlier(self) -> int:
        return bytes_before(self.events, self.blocks)

    @property
    def has_16_bits(self) -> bool:
        """True if the weights seem to have 16 bits: there are copies or states of the weights with twice their size."""
        return has_larger_copies(self._asked, self.weights)

    @property
    def _split(self) -> int:
        """Free bytes at the end in segments that are partly used. The allocator cannot return these bytes to the
        driver."""
        blocks = self._final
        used = np.unique(blocks["segment"][blocks["state"] >= _ACTIVE])
        inside = (blocks["state"] < _ACTIVE) & np.isin(blocks["segment"], used) & (blocks["private"] == 0)
        return int(blocks["size"][inside].sum())

    @property
    def _idle_graphs(self) -> int:
        """Free bytes in the pools of CUDA graphs at the end."""
        blocks = self._final
        return int(blocks["size"][(blocks["state"] < _ACTIVE) & (blocks["private"] > 0)].sum())

    @cached_property
    def places(self) -> SnapshotPlaces:
        """Translates stacks into the places in the program that allocated the blocks."""
        return SnapshotPlaces(self.snapshot)

    def place_keys(self, chosen: Rows) -> Ints:
        return self.places.keys(self.stack[chosen])

    def place(self, key: list[int]) -> Place:
        return self.places.place(key)

    def places_of_weights(self) -> list[tuple[Place, Counter[int]]]:
        """Returns the places that allocated at least MIN_WEIGHTS blocks which exist at the peak, outside of passes and
        optimizers. Each has the number of its blocks by size in bytes."""
        recorded = self.at_peak & self.blocks.known_begin
        stacks = np.concatenate((self.stack[recorded], self._earlier["stack"]))
        sizes = np.concatenate((self.blocks.size[recorded], self._asked))
        chosen = np.isin(self.roles[stacks], (Role.CONSTRUCTION, Role.OTHER)) & (sizes > ROUNDING)
        keys, sizes = self.places.keys(stacks[chosen]), sizes[chosen]
        kinds, which = np.unique(keys, axis=0, return_inverse=True)
        found = ((kinds[kind].tolist(), Counter(sizes[which.ravel() == kind].tolist())) for kind in range(len(kinds)))
        return [(self.place(key), counts) for key, counts in found if counts.total() >= MIN_WEIGHTS]

    def all_sites(self) -> list[Site]:
        """Returns the places that allocated the memory of the peak, the place with the most bytes first. Unlike
        `sites`, it includes the blocks that exist at the end and were allocated before the recorded calls."""
        alive, earlier = self.at_peak, self._earlier
        category = np.concatenate((self.category[alive], self._earlier_category))
        keys = self.places.keys(np.concatenate((self.stack[alive], earlier["stack"])))
        sizes = np.concatenate((self.blocks.size[alive], earlier["size"]))
        return group_sites(np.column_stack((category, keys)), sizes, self.place)


def snapshot_memory(snapshot: AllocatorSnapshot) -> SnapshotMemory:
    """Returns the memory of the device that has the most reserved bytes in `snapshot`."""
    segments = snapshot.segments
    devices = segments["device"] if len(segments["device"]) else snapshot.entries["device"]
    weights = segments["total"] if len(segments["device"]) else np.ones(len(devices))
    found, which = np.unique(devices, return_inverse=True)
    sums = np.bincount(which.reshape(-1), weights) if len(found) else np.zeros(1)
    return SnapshotMemory(snapshot, int(found[np.argmax(sums)]) if len(found) else 0)


def _is(action: Ints, *names: str) -> Bools:
    return np.isin(action, [ACTIONS.index(name) for name in names])


def passes_before(opened: Ints, event: Ints) -> Ints:
    """Returns for each block the number of backward passes that begin before the block or with it. A step may have
    several passes.

    `opened` has the Role of the allocation of each block, `event` the index of this allocation in the memory events."""
    rows = np.argsort(event, kind="stable")
    passing = np.isin(opened[rows], (Role.FORWARD, Role.BACKWARD))
    is_backward = opened[rows[passing]] == Role.BACKWARD
    begins = np.zeros(len(rows), np.int64)
    begins[np.flatnonzero(passing)] = np.diff(is_backward.astype(np.int8), prepend=0) > 0
    passes = np.empty(len(rows), np.int64)
    passes[rows] = np.cumsum(begins)
    return passes


def _of_fullest(chosen: Bools, step: Ints, size: Ints) -> Bools:
    """Returns a mask of those blocks in the mask `chosen` that belong to one step: the step whose chosen blocks have
    the most bytes. `step` has the number of the step of each block, `size` the bytes of each block."""
    if not chosen.any():
        return chosen
    return np.asarray(chosen & (step == np.bincount(step[chosen], size[chosen]).argmax()), np.bool_)
