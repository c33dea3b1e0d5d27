"""Where memory was allocated: operator, module and line of the program."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.measure import Record
from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import CATEGORIES, Category
from tb_bottleneck.trace.forward_links import forward_links, linked_forward
from tb_bottleneck.trace.frames import already_running_frames, frame_parts, is_user_frame
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost, nest
from tb_bottleneck.trace.table import Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

MODULE = "nn.Module: "
MAX_DEPTH = 64
"""Maximum number of modules or callers in a path. More distant ones are left out."""


class Place(Record, frozen=True):
    """A place in the program that allocated blocks. Names are untrusted text, and empty if they were not recorded.

    In a snapshot, and in a trace that has the lines of calls, `line` is the line of the call in `function`. In other
    traces, it is the first line of `function`. It is 0 if unknown, as for a function that already ran when the
    recording began. `path` has the modules around `module` in a trace, and the callers of `function` in a snapshot,
    outermost first."""

    operator: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    path: tuple[str, ...] = ()


class Site(Record, frozen=True):
    """The blocks of one category that one place of the program allocated: their total size in `bytes`, their number
    `blocks`, and the size in bytes of the `largest` block."""

    category: Category
    place: Place
    bytes: int
    blocks: int
    largest: int


def group_sites(keys: Ints, size: Ints, place_of: Callable[[list[int]], Place]) -> list[Site]:
    """Returns one site for each distinct row of `keys`, the site with the most bytes first.

    `keys` and `size` (bytes) have one row per block. The first column of `keys` is the category, as an index into
    CATEGORIES. `place_of` gets the other columns of a row, and returns the place."""
    first, which = distinct_rows(*(keys.T + 1))
    total = np.bincount(which, size, minlength=len(first)).astype(np.int64)
    count = np.bincount(which, minlength=len(first))
    largest = np.zeros(len(first), np.int64)
    np.maximum.at(largest, which, size)
    sites = []
    for row in np.argsort(-total, kind="stable").tolist():
        kind, *key = keys[first[row]].tolist()
        sites.append(Site(CATEGORIES[kind], place_of(key), int(total[row]), int(count[row]), int(largest[row])))
    return sites


class TracePlaces:
    """The places in the program that allocated the blocks of a trace.

    For a block that a backward operator allocates, the module and the line are those of the corresponding forward
    operator."""

    def __init__(self, trace: Trace, blocks: Blocks) -> None:
        self._trace, self._blocks = trace, blocks

    def keys(self, chosen: Rows) -> Ints:
        """Returns a key with four columns for each block in `chosen` (row numbers).

        The columns are operator, module and Python frame, as rows of the trace's names (-1 if there is none), and the
        line of the call (0 if it was not recorded)."""
        trace = self._trace
        thread, time = self._blocks.thread[chosen], self._blocks.begin[chosen]
        operator = self._around(thread, time, self._operators)
        _, forward = linked_forward(trace, forward_links(trace), thread, time)
        linked = forward >= 0
        thread = np.where(linked, trace.events.thread[forward], thread)
        time = np.where(linked, trace.events.start[forward], time)
        module = self._around(thread, time, self._modules)
        frame = self._around(thread, time, self._frames)
        python = trace.rows(Kind.PYTHON) if len(trace.call_lines) else np.empty(0, np.intp)
        call = self._around(thread, time, python[trace.call_lines.of(python) > 0])
        inside = (frame >= 0) & (trace.events.start[call] > trace.events.start[frame])
        named = (np.where(row >= 0, trace.events.name[row], -1) for row in (operator, module, frame))
        return np.column_stack((*named, np.where(inside, trace.call_lines.of(call), 0)))

    def place(self, key: list[int]) -> Place:
        """Returns the place with the key `key`, one row of `keys`."""
        names = self._trace.names
        operator, module, frame, called_in = key
        file, line, function = frame_parts(names[frame]) if frame >= 0 else ("", 0, "")
        line = called_in or (0 if frame in self._running else line)
        return Place(
            operator=names[operator] if operator >= 0 else "",
            module=_module_name(names[module]) if module >= 0 else "",
            file=file,
            line=line,
            function=function,
            path=self._modules_around(module) if module >= 0 else (),
        )

    @cached_property
    def _operators(self) -> Rows:
        return self._rows_named(Kind.CPU_OP, _is_operator)

    @cached_property
    def _modules(self) -> Rows:
        return self._rows_named(Kind.PYTHON, _is_module)

    @cached_property
    def _frames(self) -> Rows:
        return self._rows_named(Kind.PYTHON, is_user_frame)

    def _rows_named(self, kind: Kind, test: Callable[[str], bool]) -> Rows:
        rows = self._trace.rows(kind)
        return rows[name_matches(self._trace.names, self._trace.events.name[rows], test)]

    def _around(self, thread: Ints, time: Ints, rows: Rows) -> Ints:
        """Returns for each pair of `thread` and `time` (ns) the innermost event among the event rows `rows` that runs
        on this thread at this time; -1 if there is none."""
        trace = self._trace
        found = np.full(len(time), -1, np.int64)
        own = by_thread(np.arange(len(time)), thread)
        for each, around in by_thread(rows, trace.events.thread).items():
            mine = own.get(each)
            if mine is not None:
                inside, row = innermost(trace.events.start[around], trace.events.end[around], time[mine])
                found[mine[inside]] = around[row[inside]]
        return found

    def _modules_around(self, name: int) -> tuple[str, ...]:
        """Returns the names of the modules that enclose the first call of a module, outermost first. `name` is the row
        of the module's name in the trace's names. Each instance of a class has a different name."""
        path: list[str] = []
        at = self._parents.get(name, -1)
        while at >= 0 and len(path) < MAX_DEPTH:
            path.append(_module_name(self._trace.names[at]))
            at = self._parents.get(at, -1)
        return tuple(reversed(path))

    @cached_property
    def _running(self) -> set[int]:
        """Names (rows of the trace's names) of the functions that already ran when the recording began. The lines of
        their frames are therefore not known."""
        rows = np.flatnonzero(already_running_frames(self._trace))
        return set(self._trace.events.name[rows].tolist())

    @cached_property
    def _parents(self) -> dict[int, int]:
        """A dict: name of a module -> name of the module that encloses its first call, or -1 if none does. Names are
        rows of the trace's names."""
        trace = self._trace
        rows = trace.rows(Kind.PYTHON)
        rows = rows[name_matches(trace.names, trace.events.name[rows], _is_module)]
        parents: dict[int, int] = {}
        for own in by_thread(rows, trace.events.thread).values():
            parent = own[nest(trace.events.start[own], trace.events.end[own]).parent]
            names, first = np.unique(trace.events.name[own], return_index=True)
            outer = np.where(parent[first] == own[first], -1, trace.events.name[parent[first]])
            for name, above in zip(names.tolist(), outer.tolist(), strict=True):
                parents.setdefault(name, above if above != name else -1)
        return parents


# Operators that only allocate for the operator around them.
_ALLOCATING = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::resize_", "aten::new_empty"}


def _is_operator(name: str) -> bool:
    return name not in _ALLOCATING


def _is_module(name: str) -> bool:
    return name.startswith(MODULE)


def _module_name(name: str) -> str:
    return name.removeprefix(MODULE)
