"""Keeps the traces of the last questions in memory, so that the next answer about them comes at once."""

from collections import OrderedDict
from collections.abc import Callable

from tb_bottleneck.drilldown.inspection import Case
from tb_bottleneck.trace.trace import load

Progress = Callable[[int, int], None]

KEPT_EVENTS = 3_000_000
"""Limit on the events of all cached traces together; one trace always stays. An event takes some 500 bytes, including
what is derived from it."""


class TraceCache:
    """The traces that were opened last, with what is derived from them. For use by one thread."""

    def __init__(self) -> None:
        self._cases: OrderedDict[tuple[str, int], Case] = OrderedDict()

    def case(self, path: str, mtime_ns: int, progress: Progress | None) -> Case:
        """Returns the trace at this path with this modification time; reads it if it is not cached."""
        key = (path, mtime_ns)
        if key not in self._cases:
            self._cases[key] = Case(load(path, progress))
        self._cases.move_to_end(key)
        while len(self._cases) > 1 and sum(len(case.trace.events) for case in self._cases.values()) > KEPT_EVENTS:
            self._cases.popitem(last=False)
        return self._cases[key]
