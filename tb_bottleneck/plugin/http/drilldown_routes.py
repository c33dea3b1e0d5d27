"""Routes that look into one recording: the series of telemetry, and the details of a trace.

The routes into a trace are timeline, tree, slice.
"""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http.job_route import RecordingLookup, finite_number
from tb_bottleneck.plugin.http.responses import Response, client_of, error, worker_reply
from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryEntry, is_live, last_record
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.plugin.workers.questions import (
    TREES,
    RecordingQuestion,
    SliceQuestion,
    TimelineQuestion,
    TraceFile,
    TreeQuestion,
)
from tb_bottleneck.report.json_form import as_dict
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.telemetry_pb2 import Band, Dropped, TelemetryAnswer
from tb_bottleneck.telemetry.bounded_columns import Floats, points_of
from tb_bottleneck.telemetry.telemetry import STEP_NAMES, Telemetry

_MAX_INT32 = (1 << 31) - 1

MAX_ANSWERED_READINGS = 500_000
"""Maximum number of readings and step figures in one answer, about 20 MB. The series of a longer run have fewer points
than readings; a request with `since` gets the end of the run in full."""


def answer_text(
    requested_id: str, entry: TelemetryEntry, report: Report, most: int | None, since: int, until: int | None = None
) -> str:
    """Returns the answer to `telemetry?id=...` as JSON: a `TelemetryAnswer` with the series and phases of one run.

    Each series has at most `most` points (None: as many as the answer may have), with times in (since, until] in ns
    since 1970; `until` None means no upper limit. The phases are those of `report`. The caller holds the lock of
    `entry`.

    The long columns are written to the JSON directly, not through a protobuf message: for the run of a day, this takes
    a tenth of the time.
    """
    telemetry = entry.reader.telemetry
    answer = TelemetryAnswer(
        id=requested_id,
        live=is_live(last_record(telemetry)),
        context=telemetry.context,
        notes=list(telemetry.notes),
        lost_packets=min(telemetry.lost_packets, _MAX_INT32),
        dropped=[
            Dropped(reason=reason, count=min(count, _MAX_INT32)) for reason, count in entry.reader.dropped.items()
        ],
        devices=telemetry.devices,
        bands=[
            Band(
                begin_unix_ns=band.begin_ns,
                end_unix_ns=band.end_ns,
                regime=band.regime,
                share=band.share,
                severity=band.severity,
                title=band.title,
            )
            for band in report.phases
        ],
    )
    most = min(_points_per_column(telemetry), most if most is not None else MAX_ANSWERED_READINGS)
    values = as_dict(answer) | {
        "series": _series(telemetry, most, since, until),
        "steps": _steps(telemetry, most, since, until),
    }
    return json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _points_per_column(telemetry: Telemetry) -> int:
    """Returns the number of points per column at which all columns of `telemetry` together have at most
    MAX_ANSWERED_READINGS points."""
    return MAX_ANSWERED_READINGS // (len(telemetry.series) + len(STEP_NAMES) + 1)


def _series(telemetry: Telemetry, most: int, since: int, until: int | None) -> list[dict[str, Any]]:
    columns = []
    for (name, device), rows in sorted(telemetry.series.items()):
        points = points_of(rows, most, since, until)
        values = _numbers(points.columns["value"])
        columns.append({"name": name, "device": device, "unix_ns": points.end.astype(float).tolist(), "values": values})
    return columns


def _steps(telemetry: Telemetry, most: int, since: int, until: int | None) -> dict[str, Any]:
    points = points_of(telemetry.steps, most, since, until)
    numbers = points.columns["number"]
    recorded = [name for name in STEP_NAMES[1:] if (points.columns[name] == points.columns[name]).any()]
    return {
        "number": [int(number) for number in numbers.tolist()],
        "end_unix_ns": points.end.astype(float).tolist(),
        "wall_ns": _numbers(points.columns["wall"]),
        "columns": [{"name": name, "values": _numbers(points.columns[name])} for name in recorded],
        "steps": [],  # empty, because a point may stand for several rows
    }


def _numbers(values: Floats) -> list[float | None]:
    """Returns `values` as a list, with None in place of NaN, because JSON has no NaN."""
    numbers: list[float | None] = values.tolist()
    if (values != values).any():
        return [None if value != value else value for value in numbers]
    return numbers


MAX_DIGITS = 9

_NewQuestion: TypeAlias = Callable[..., RecordingQuestion]


class DrilldownRoutes:
    """The HTTP handlers of the routes that return details of a trace. A worker process computes the answers."""

    def __init__(self, lookup: RecordingLookup, questions: QuestionQueue) -> None:
        self._lookup = lookup
        self._questions = questions

    def timeline(self, request: Request) -> Response:
        """Replies with the timeline of recording `id` from `begin` to `end` (ns), at the resolution of `pixels`
        columns."""
        return self._ask(request, TimelineQuestion, ("begin", "end", "pixels"))

    def tree(self, request: Request) -> Response:
        """Replies with the tree of the time of recording `id`. With the parameter `with`, replies with the difference
        from the recording with that id."""
        recording = self._lookup.trace(request)
        if isinstance(recording, Response):
            return recording
        by = request.args.get("by", TREES[0])
        if by not in TREES:
            return error(400, f"`by` must be one of {', '.join(TREES)}.")
        numbers: dict[str, int | None] = {}
        for name in ("device", "first", "last"):
            text = request.args.get(name, "")
            if text and not (text.isascii() and text.isdigit() and len(text) < MAX_DIGITS):
                return error(400, f"`{name}` must be a whole number; steps count from 1.")
            numbers[name] = int(text) if text else None
        other = self._lookup.other_trace(request, "with") if request.args.get("with") else None
        if isinstance(other, Response):
            return other
        question = TreeQuestion(
            TraceFile.of(id_of(recording), recording),
            by,
            merged=request.args.get("merged") == "1",
            device=numbers["device"],
            first_step=numbers["first"],
            last_step=numbers["last"],
            other=None if other is None else TraceFile.of(id_of(other), other),
        )
        return self._reply(request, question)

    def slice(self, request: Request) -> Response:
        """Replies with the events of a trace from `begin` to `end` (ns), as a gzipped trace."""
        return self._ask(request, SliceQuestion, ("begin", "end"), encoding="gzip")

    def _ask(
        self, request: Request, new_question: _NewQuestion, parameters: tuple[str, ...], encoding: str | None = None
    ) -> Response:
        recording = self._lookup.trace(request)
        if isinstance(recording, Response):
            return recording
        numbers: list[float | None] = []
        for name in parameters:
            try:
                numbers.append(finite_number(request.args.get(name, "")))
            except ValueError:
                return error(400, f"`{name}` is not a number: omit it, or use nanoseconds on the trace's clock.")
        question = new_question(TraceFile.of(id_of(recording), recording), *numbers)
        return self._reply(request, question, encoding)

    def _reply(self, request: Request, question: RecordingQuestion, encoding: str | None = None) -> Response:
        return worker_reply(self._questions.ask(question, client=client_of(request)), encoding)
