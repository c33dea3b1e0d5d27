"""Steps at the end of a trace that were recorded without stacks, after steps with stacks.

Recording stacks makes Python code up to several times slower. The monitor turns stacks off for the last recorded steps,
and writes the number of steps with stacks into the trace. A report is only about the steps with stacks. The steps
without stacks show how long the same operators, and the code between these operators, take without stacks.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.columns.packed_column import packed
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows

KEY = "tb_bottleneck_steps_with_stacks"
"""The top-level key of a trace with the number of steps with stacks."""
_MARK = "ProfilerStep#"


class StacklessSteps(Record, frozen=True, eq=False):
    """The steps without stacks. `operators` are the events of operators in these steps.

    Step i is the time [edges[i], edges[i + 1]), in ns.
    """

    operators: Events
    edges: Ints


def split_off(
    raw: dict[str, Any], events: Events, names: tuple[str, ...], memory: MemoryEvents
) -> tuple[Events, MemoryEvents, StacklessSteps | None]:
    """Splits a trace at the end of the steps with stacks.

    Returns the events and the memory events up to this time, and the steps without stacks. Events that run at this time
    are cut. If all steps have stacks or none has, returns `events` and `memory` unchanged, and None. `raw` has the
    top-level keys of the trace, and `names` the interned names of its events.

    A training can end within a step. Therefore, the last step without stacks counts only if it has at least as many
    operators as one of the steps with stacks. If there is no complete step without stacks, the last value is None.
    """
    count = raw.get(KEY)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        return events, memory, None
    is_mark = np.array([name.startswith(_MARK) for name in names], np.bool_)
    marks = np.flatnonzero(is_mark[events.name[:]] & (events.kind == Kind.ANNOTATION))
    if count >= len(marks):
        return events, memory, None
    start, end = events.start[marks], events.end[marks]
    limit = int(end[count - 1])
    edges = np.append(start, end[-1])
    operators = np.flatnonzero(events.kind == Kind.CPU_OP)
    per_step = np.diff(np.searchsorted(events.start[operators], edges))
    is_whole = per_step[-1] >= per_step[:count].min()
    edges = np.unique(edges[count:] if is_whole else edges[count:-1])  # a damaged file can have a mark twice
    stackless = None
    if len(edges) > 1:
        after = operators[(events.start[operators] >= edges[0]) & (events.start[operators] < edges[-1])]
        stackless = StacklessSteps(_part(events, after), edges)
    kept = _part(events, events.start < limit)
    kept = replace(kept, duration=packed(np.minimum(kept.end[:], limit) - kept.start[:]))
    return kept, memory.take(memory.time < limit), stackless


def _part(events: Events, rows: Rows | Bools) -> Events:
    """Returns the selected rows, stored in as little memory as those of `events`."""
    columns = {column.name: getattr(events, column.name)[rows] for column in fields(events)}
    return Events(**{name: values if name == "start" else packed(values) for name, values in columns.items()})
