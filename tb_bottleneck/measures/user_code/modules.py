"""Finds the module (layer of a model) that has most of a cost, and the forward operators of backward operators.

The cost of a time belongs to the module that runs, and to the modules that contain this module.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Record
from tb_bottleneck.measures.user_code.frames import MAX_DEPTH
from tb_bottleneck.trace.forward_links import ForwardLinks, forward_links, linked_forward
from tb_bottleneck.trace.frames import merged_module, module_name
from tb_bottleneck.trace.kernel_names import cut, name_matches
from tb_bottleneck.trace.kinds import MODULE, Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Floats, Ints, Rows, by_thread


@memoized
def _links(recording: Recording) -> ForwardLinks:
    return forward_links(recording.trace)


def forward_of(recording: Recording, threads: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Returns two arrays with one element for each pair (threads[i], times[i]): the event rows of the backward operator
    that runs, and of its forward operator. An element is -1 if there is none. `times` are in ns."""
    return linked_forward(recording.trace, _links(recording), threads, times)


# A module is named if it has at least this share of the cost.
MIN_MODULE_SHARE = 0.5
# No model is nested more deeply, but the rows of a file may be. The cost of modules below this depth counts for the
# module at this depth.
MAX_NAMED_DEPTH = 100

_Path = tuple[str, ...]


class ModuleRows(Record, frozen=True, eq=False):
    """The calls of modules. `rows` has their event rows in ascending order, and `around` for each of them the event row
    of the module that contains it, or -1."""

    rows: Rows
    around: Ints


@memoized
def module_rows(recording: Recording) -> ModuleRows:
    """Returns the calls of modules: from the monitor's annotations (monitor/capture/module_marks.py) if there are any,
    else from the profiler's Python events."""
    trace, events = recording.trace, recording.trace.events
    for kind in (Kind.ANNOTATION, Kind.PYTHON):
        rows = trace.rows(kind)
        rows = rows[name_matches(trace.names, events.name[rows], lambda name: name.startswith(MODULE))]
        if len(rows):
            break
    around = np.full(len(events), -1, np.int64)
    for own in by_thread(rows, events.thread).values():
        parent = nest(events.start[own], events.end[own]).parent
        around[own] = np.where(parent == np.arange(len(own)), -1, own[parent])
    return ModuleRows(rows, around[rows])


def module_of(recording: Recording, rows: Ints, costs: Floats) -> str:
    """Returns the name of the module with at least MIN_MODULE_SHARE of the sum of `costs`; empty if there is none.

    `rows` has for each cost the event row of the innermost module, or -1 outside of all modules. If no innermost module
    has this share, the result is the most deeply nested enclosing module that has it. In this case, modules whose names
    differ only in numbers count as one (`Linear_*`).
    """
    total, inside = float(costs.sum()), rows >= 0
    if not inside.any() or total <= 0:
        return ""
    trace = recording.trace
    names, group = np.unique(trace.events.name[rows[inside]], return_inverse=True)
    by_module = np.bincount(group, weights=costs[inside])
    costliest = int(np.argmax(by_module))
    if by_module[costliest] >= MIN_MODULE_SHARE * total:
        return cut(module_name(trace.names[names[costliest]]))
    distinct, group = np.unique(rows[inside], return_inverse=True)
    return _innermost(
        _paths(recording, distinct), np.bincount(group, weights=costs[inside]).tolist(), MIN_MODULE_SHARE * total
    )


def _paths(recording: Recording, rows: Rows) -> list[_Path]:
    """Returns for the module at each of the event rows `rows` the names of the modules that contain it, outermost
    first, and then its own name."""
    trace, modules = recording.trace, module_rows(recording)
    paths: list[list[str]] = [[] for _ in rows]
    inner, row = np.arange(len(rows)), rows
    for _ in range(MAX_DEPTH):
        for path, name in zip(inner.tolist(), trace.events.name[row].tolist(), strict=True):
            paths[path].append(module_name(trace.names[name]))
        at = np.searchsorted(modules.rows, row)
        known = np.append(modules.rows, -1)[at] == row
        outer = np.where(known, np.append(modules.around, -1)[at], -1)
        inner, row = inner[outer >= 0], outer[outer >= 0]
        if not len(row):
            break
    return [tuple(reversed(path))[:MAX_NAMED_DEPTH] for path in paths]


def _innermost(paths: Sequence[_Path], costs: Sequence[float], enough: float) -> str:
    """Returns the name of the most deeply nested module with a cost of at least `enough`; empty if there is none.
    `paths` is a result of `_paths`; `costs` has the cost of each path."""
    by_path: dict[_Path, float] = defaultdict(float)
    names: dict[_Path, set[str]] = defaultdict(set)
    merged_of = {name: merged_module(name) for name in set(chain.from_iterable(paths))}
    for path, cost in zip(paths, costs, strict=True):
        merged = tuple(merged_of[name] for name in path)
        for depth in range(1, len(path) + 1):
            by_path[merged[:depth]] += cost
            names[merged[:depth]].add(path[depth - 1])
    found = [path for path, cost in by_path.items() if cost >= enough]
    if not found:
        return ""
    deepest = max(found, key=lambda path: (len(path), by_path[path]))
    return cut(names[deepest].pop() if len(names[deepest]) == 1 else deepest[-1])
