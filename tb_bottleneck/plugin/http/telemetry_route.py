"""The answer to `telemetry?id=...`: the series of one run, with at most the requested number of points."""

import json
from typing import Any

from tb_bottleneck.plugin.state.telemetry_registry import TelemetryEntry, is_live, last_record
from tb_bottleneck.report.rendering.json_form import as_dict
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.telemetry_pb2 import Band, Dropped, TelemetryAnswer
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.telemetry.downsample import points_of
from tb_bottleneck.telemetry.telemetry import STEP_NAMES, Telemetry

_MAX_INT32 = (1 << 31) - 1

MAX_ANSWERED_READINGS = 500_000
"""Maximum number of readings and step figures in one answer, about 20 MB. A longer run is thinned; `since` returns its
end in full."""


def answer_text(
    requested_id: str, entry: TelemetryEntry, report: Report, most: int | None, since: int, until: int | None = None
) -> str:
    """Returns a `TelemetryAnswer` as JSON, with the phases of this report. The caller holds the lock of the entry.

    The long columns do not pass through a message: for a day's run that takes a tenth of the time.
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
    """Returns the number of points per column at which all columns together stay within MAX_READINGS."""
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
        "steps": [],  # a point may be of several rows
    }


def _numbers(values: Floats) -> list[float | None]:
    """Returns the values with None in place of NaN, which JSON does not have."""
    numbers: list[float | None] = values.tolist()
    if (values != values).any():
        return [None if value != value else value for value in numbers]
    return numbers
