"""Where the memory of a moment was allocated: operator, module and line of the program."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import CATEGORIES, Category
from tb_bottleneck.order_statistics import distinct_rows
from tb_bottleneck.record import Record
from tb_bottleneck.trace.frame_owner import frame_parts, is_user_frame
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.table import Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

MODULE = "nn.Module: "


class Site(Record, frozen=True):
    """Blocks of one category from one place. Names are untrusted text, and empty if they were not recorded.

    `line` is the one at which the function begins in a trace, and the one of the call in a snapshot.
    """

    category: Category
    operator: str
    module: str
    file: str
    line: int
    function: str
    bytes: int
    blocks: int
    largest: int
    """Bytes of the largest block."""


def sites_of(trace: Trace, blocks: Blocks, category: Ints, chosen: Rows) -> list[Site]:
    """Returns the places that allocated these blocks, the most bytes first."""
    tests = ((Kind.CPU_OP, _is_operator), (Kind.PYTHON, _is_module), (Kind.PYTHON, is_user_frame))
    keys = (category[chosen], *(enclosing(trace, blocks, chosen, kind, test) for kind, test in tests))
    first, which = distinct_rows(*(key + 1 for key in keys))
    total = np.bincount(which, blocks.size[chosen], minlength=len(first)).astype(np.int64)
    count = np.bincount(which, minlength=len(first))
    largest = np.zeros(len(first), np.int64)
    np.maximum.at(largest, which, blocks.size[chosen])
    sites = []
    for row in np.argsort(-total, kind="stable").tolist():
        kind, operator, module, frame = (int(key[first[row]]) for key in keys)
        file, line, function = frame_parts(trace.names[frame]) if frame >= 0 else ("", 0, "")
        sites.append(
            Site(
                category=CATEGORIES[kind],
                operator=trace.names[operator] if operator >= 0 else "",
                module=trace.names[module].removeprefix(MODULE) if module >= 0 else "",
                file=file,
                line=line,
                function=function,
                bytes=int(total[row]),
                blocks=int(count[row]),
                largest=int(largest[row]),
            )
        )
    return sites


def enclosing(trace: Trace, blocks: Blocks, chosen: Rows, kind: Kind, test: Callable[[str], bool]) -> Ints:
    """Returns for each block the row of the name of the innermost event of this kind around its allocation, or -1."""
    found = np.full(len(chosen), -1, np.int64)
    rows = trace.rows(kind)
    rows = rows[name_matches(trace.names, trace.events.name[rows], test)]
    own = by_thread(np.arange(len(chosen)), blocks.thread[chosen])
    for thread, around in by_thread(rows, trace.events.thread).items():
        mine = own.get(thread)
        if mine is not None:
            times = blocks.begin[chosen[mine]]
            inside, row = innermost(trace.events.start[around], trace.events.end[around], times)
            found[mine[inside]] = trace.events.name[around[row[inside]]]
    return found


# Operators that only allocate for the operator around them.
_ALLOCATING = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::resize_", "aten::new_empty"}


def _is_operator(name: str) -> bool:
    return name not in _ALLOCATING


def _is_module(name: str) -> bool:
    return name.startswith(MODULE)
