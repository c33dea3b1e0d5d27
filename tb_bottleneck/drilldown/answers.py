"""Answers questions about recordings: the last ones asked about stay read, so that the next answer comes at once.

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

KEPT_EVENTS = 3_000_000
"""Of all recordings that stay read together, one always: some 500 bytes each, with what is derived from them."""


class TraceCache:
    """The recordings that are kept read. For one thread."""

    def __init__(self) -> None:
        self._cases: OrderedDict[tuple[str, int], InspectedTrace] = OrderedDict()

    def case(self, path: str, mtime_ns: int, progress: Progress | None) -> InspectedTrace:
        """The recording at this path as it was written at this time; read where it is not here."""
        key = (path, mtime_ns)
        if key not in self._cases:
            self._cases[key] = InspectedTrace(load(path, progress))
        self._cases.move_to_end(key)
        while len(self._cases) > 1 and sum(len(case.trace.events) for case in self._cases.values()) > KEPT_EVENTS:
            self._cases.popitem(last=False)
        return self._cases[key]


_TRACES = TraceCache()


def answer(question: Mapping[str, Any], progress: Progress | None = None) -> bytes:
    """The answer to {"ask": timeline | tables | slice, "id", "path", "mtime_ns", "begin", "end", "pixels"}.

    JSON of a TimelineAnswer or a TablesAnswer, or a gzipped trace. A file that cannot be read is an answer too, whose
    state is failed; of a slice it raises BottleneckError.
    """
    ask = question["ask"]
    if ask == "slice":
        case = _TRACES.case(question["path"], question["mtime_ns"], progress)
        stretch = time_range_of(case, question["begin"], question["end"], None)
        return slice_of(case.trace, stretch.begin, stretch.end)
    message: Message
    try:
        case = _TRACES.case(question["path"], question["mtime_ns"], progress)
        message = _answered(question, case)
    except BottleneckError as error:
        kind = pb.TimelineAnswer if ask == "timeline" else pb.TablesAnswer
        message = kind(id=question["id"], state="failed", problem=str(error))
    return as_json(message).encode()


def _answered(question: Mapping[str, Any], case: InspectedTrace) -> Message:
    if question["ask"] == "tables":
        return pb.TablesAnswer(id=question["id"], state="done", progress=1.0, tables=tables_of(case))
    stretch = time_range_of(case, question["begin"], question["end"], question["pixels"])
    return pb.TimelineAnswer(id=question["id"], state="done", progress=1.0, timeline=timeline_of(case, stretch))
