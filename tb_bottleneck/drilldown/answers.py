"""Answers questions about one recording. The recordings of the last questions stay in memory for the next ones.

This runs in a process of its own, see plugin/workers/question_queue.py.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tables import tables_of
from tb_bottleneck.drilldown.timeline import time_range_of, timeline_of
from tb_bottleneck.drilldown.trace_slice import slice_of
from tb_bottleneck.errors import BottleneckError
from tb_bottleneck.report.rendering.json_form import as_json
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.trace import load

Progress = Callable[[int, int], None]

MAX_CACHED_EVENTS = 3_000_000
"""Limit for the events of all cached recordings together, except that one recording always stays. An event takes some
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


_TRACES = TraceCache()


def answer(question: Mapping[str, Any], progress: Progress | None = None) -> bytes:
    """Returns the answer to {"ask": timeline | tables | slice, "id", "path", "mtime_ns", "begin", "end", "pixels"}.

    The answer is the JSON of a TimelineAnswer or a TablesAnswer, or a gzipped trace. If the file cannot be read, the
    answer has the state `failed`; for a slice, a BottleneckError is raised instead.
    """
    ask = question["ask"]
    if ask == "slice":
        inspected = _TRACES.get(question["path"], question["mtime_ns"], progress)
        time_range = time_range_of(inspected, question["begin"], question["end"], None)
        return slice_of(inspected.trace, time_range.begin, time_range.end)
    message: Message
    try:
        inspected = _TRACES.get(question["path"], question["mtime_ns"], progress)
        message = _answer_message(question, inspected)
    except BottleneckError as error:
        kind = pb.TimelineAnswer if ask == "timeline" else pb.TablesAnswer
        message = kind(id=question["id"], state="failed", problem=str(error))
    return as_json(message).encode()


def _answer_message(question: Mapping[str, Any], inspected: InspectedTrace) -> Message:
    if question["ask"] == "tables":
        return pb.TablesAnswer(id=question["id"], state="done", progress=1.0, tables=tables_of(inspected))
    time_range = time_range_of(inspected, question["begin"], question["end"], question["pixels"])
    timeline = timeline_of(inspected, time_range)
    return pb.TimelineAnswer(id=question["id"], state="done", progress=1.0, timeline=timeline)
