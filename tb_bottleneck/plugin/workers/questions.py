"""Questions about recordings, as the server sends them to the process that answers them.

A question is a frozen value: equal questions have equal answers, so a question is also the key of its cached reply. A
question names each file with its modification time and size. Therefore the question about a file is a different one
after the file was replaced.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeAlias, get_args

from tb_bottleneck.sources.logdir import RecordingFile


@dataclass(frozen=True)
class TraceFile:
    """A trace file: its id in the list, its path, and its modification time and size (bytes), which show changes."""

    id: str
    path: str
    mtime_ns: int
    size: int

    @classmethod
    def of(cls, id_: str, recording: RecordingFile) -> "TraceFile":
        """Returns the TraceFile of `recording`, with `id_` as its id."""
        return cls(id_, recording.path, recording.mtime_ns, recording.size)


@dataclass(frozen=True)
class TelemetryFile:
    """An event file of the monitor: its path, and its modification time, which shows changes."""

    path: str
    mtime_ns: int


@dataclass(frozen=True)
class ComparedRecording:
    """A trace with the telemetry of the same run, under the name that a comparison shows. `trace` is the telemetry of a
    run without a trace."""

    name: str
    trace: TraceFile
    telemetry: tuple[TelemetryFile, ...] = ()


@dataclass(frozen=True)
class TimelineQuestion:
    """A request for the timeline of a trace from `begin_ns` to `end_ns`, at the resolution of `pixels` columns. None
    means the start of the trace, its end, or the smallest width."""

    trace: TraceFile
    begin_ns: float | None = None
    end_ns: float | None = None
    pixels: float | None = None


TREES = ("module", "line", "operator", "range", "kernel", "communication")
"""The values of `by`, which are those of drilldown/tree/paths.py; the server does not import the analysis."""


@dataclass(frozen=True)
class TreeQuestion:
    """A request for a tree of the time in a trace. `by`, one of TREES, says how time is divided.

    If `other` is not None, the answer also has the tree of this other trace. If `merged` is True, modules whose names
    differ only in numbers are one node. Steps count from 1, and `last_step` is included. For `device`, `first_step` and
    `last_step`, None means the device, the first step and the last step that the report judges."""

    trace: TraceFile
    by: str
    merged: bool = False
    device: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    other: TraceFile | None = None


@dataclass(frozen=True)
class SliceQuestion:
    """A request for the events from `begin_ns` to `end_ns` as a separate trace. None means the start or the end of the
    recording."""

    trace: TraceFile
    begin_ns: float | None = None
    end_ns: float | None = None


@dataclass(frozen=True)
class CompareQuestion:
    """A request for the comparison of recording `a` with recording `b`."""

    a: ComparedRecording
    b: ComparedRecording


@dataclass(frozen=True)
class SeriesQuestion:
    """A request for the comparison of several recordings, in the order given."""

    recordings: tuple[ComparedRecording, ...]


@dataclass(frozen=True)
class WhatIfQuestion:
    """A request for a prediction of a recording under other conditions, as in WhatIfOptions. A condition that is None
    stays as it was recorded."""

    recording: ComparedRecording
    device: str | None = None
    workers: int | None = None
    batch: int | None = None
    precision: str | None = None
    link: str | None = None


@dataclass(frozen=True)
class SavedJobQuestion:
    """A request for the job of a trace, from the saved reports of jobs in its directory.

    `saved` are the saved reports. `state` identifies the state of all traces of the run. If `brief` is True, the answer
    has no tables; if `rows` is True, it has no table of steps."""

    trace: TraceFile
    run: str
    saved: tuple[TraceFile, ...]
    state: str
    brief: bool = False
    rows: bool = False


@dataclass(frozen=True)
class JobQuestion:
    """A request for the job that has `trace` as a rank, computed from the traces `ranks` of one run."""

    trace: TraceFile
    run: str
    ranks: tuple[TraceFile, ...]


RecordingQuestion: TypeAlias = (
    TimelineQuestion
    | TreeQuestion
    | SliceQuestion
    | CompareQuestion
    | SeriesQuestion
    | WhatIfQuestion
    | SavedJobQuestion
    | JobQuestion
)

_TYPES: Mapping[str, type[RecordingQuestion]] = {cls.__name__: cls for cls in get_args(RecordingQuestion)}


@lru_cache(maxsize=1024)
def paths_of(question: RecordingQuestion) -> frozenset[str]:
    """Returns the paths of the traces in `question`. Two questions about one trace should not run at the same time."""
    parts: list[Any] = [question]
    paths = set()
    while parts:
        part = parts.pop()
        if isinstance(part, TraceFile):
            paths.add(part.path)
        elif isinstance(part, tuple):
            parts.extend(part)
        elif is_dataclass(part):
            parts.extend(getattr(part, field.name) for field in fields(part))
    return frozenset(paths)


def encode(question: RecordingQuestion) -> bytes:
    """Returns `question` as JSON text. `decode` restores it, including paths that are not valid Unicode."""
    return json.dumps({"type": type(question).__name__, "fields": asdict(question)}).encode()


def decode(payload: bytes) -> RecordingQuestion:
    """Returns the question that `encode` wrote.

    Raises:
        ValueError, KeyError, TypeError: the payload is not such a question.
    """
    question = json.loads(payload)
    values = {name: _FIELD_DECODERS.get(name, _unchanged)(value) for name, value in question["fields"].items()}
    return _TYPES[question["type"]](**values)


def _compared_recording(values: Mapping[str, Any]) -> ComparedRecording:
    telemetry = tuple(TelemetryFile(**file) for file in values["telemetry"])
    return ComparedRecording(values["name"], TraceFile(**values["trace"]), telemetry)


def _trace_files(rows: Any) -> tuple[TraceFile, ...]:
    return tuple(TraceFile(**row) for row in rows)


def _unchanged(value: Any) -> Any:
    return value


_FIELD_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "trace": lambda values: TraceFile(**values),
    "other": lambda values: TraceFile(**values) if values is not None else None,
    "a": _compared_recording,
    "b": _compared_recording,
    "recording": _compared_recording,
    "saved": _trace_files,
    "ranks": _trace_files,
    "recordings": lambda rows: tuple(map(_compared_recording, rows)),
}
"""Fields with a value of one of the classes above; all other fields are JSON scalars."""
