"""Keeps the recordings of the last questions in memory, so that further questions about them are answered quickly."""

from collections import OrderedDict
from collections.abc import Callable

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.trace.trace import load

Progress = Callable[[int, int], None]

MAX_CACHED_EVENTS = 3_000_000
"""Limit for the events of all cached recordings together, except that one recording always stays. An event takes about
500 bytes, including what is derived from it."""


class TraceCache:
    """The recordings that were used last. Not thread-safe."""

    def __init__(self) -> None:
        self._traces: OrderedDict[tuple[str, int], InspectedTrace] = OrderedDict()

    def get(self, path: str, mtime_ns: int, progress: Progress | None) -> InspectedTrace:
        """Returns the recording at this path with this modification time; reads it if it is not in the cache."""
        key = (path, mtime_ns)
        if key not in self._traces:
            self._traces[key] = InspectedTrace(load(path, progress))
        self._traces.move_to_end(key)
        while len(self._traces) > 1 and self._events() > MAX_CACHED_EVENTS:
            self._traces.popitem(last=False)
        return self._traces[key]

    def _events(self) -> int:
        return sum(len(inspected.trace.events) for inspected in self._traces.values())
