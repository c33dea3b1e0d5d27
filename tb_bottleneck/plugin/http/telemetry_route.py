"""The answer to `telemetry?id=...`: the series of one run, as dense as was asked for."""

import json
from typing import Any

from tb_bottleneck.plugin.state.telemetry_registry import TelemetryEntry, is_live, last_sign
from tb_bottleneck.report.rendering.json_form import as_dict
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.telemetry_pb2 import Band, Dropped, TelemetryAnswer
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.telemetry.downsample import points_of
from tb_bottleneck.telemetry.telemetry import STEP_NAMES, Telemetry

_MOST = (1 << 31) - 1

READINGS = 500_000
"""Readings and step figures that one answer holds at most, some 20 MB: a longer run is thinned, whatever was asked for;
`since` gives its last stretch as it is."""


def answer_text(
    asked: str, heard: TelemetryEntry, report: Report, most: int | None, since: int, until: int | None = None
) -> str:
    """A `TelemetryAnswer` as JSON, with the stretches of this report. The caller holds the lock of what was heard.

    The long columns are written without a message in between: of a day's run that takes a tenth of the time.
    """
    telemetry = heard.listener.telemetry
    answer = TelemetryAnswer(
        id=asked,
        live=is_live(last_sign(telemetry)),
        context=telemetry.context,
        notes=list(telemetry.notes),
        lost_packets=min(telemetry.lost_packets, _MOST),
        dropped=[Dropped(reason=reason, count=min(count, _MOST)) for reason, count in heard.listener.dropped.items()],
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
    most = min(_fair_part(telemetry), most if most is not None else READINGS)
    values = as_dict(answer) | {
        "series": _series(telemetry, most, since, until),
        "steps": _steps(telemetry, most, since, until),
    }
    return json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _fair_part(telemetry: Telemetry) -> int:
    """Points of each column that leave room for all the others."""
    return READINGS // (len(telemetry.series) + len(STEP_NAMES) + 1)


def _series(telemetry: Telemetry, most: int, since: int, until: int | None) -> list[dict[str, Any]]:
    found = []
    for (name, device), rows in sorted(telemetry.series.items()):
        points = points_of(rows, most, since, until)
        values = _numbers(points.columns["value"])
        found.append({"name": name, "device": device, "unix_ns": points.end.astype(float).tolist(), "values": values})
    return found


def _steps(telemetry: Telemetry, most: int, since: int, until: int | None) -> dict[str, Any]:
    points = points_of(telemetry.steps, most, since, until)
    numbers = points.columns["number"]
    known = [name for name in STEP_NAMES[1:] if (points.columns[name] == points.columns[name]).any()]
    return {
        "number": [int(number) for number in numbers.tolist()],
        "end_unix_ns": points.end.astype(float).tolist(),
        "wall_ns": _numbers(points.columns["wall"]),
        "columns": [{"name": name, "values": _numbers(points.columns[name])} for name in known],
    }


def _numbers(values: Floats) -> list[float | None]:
    """The values, null in the place of what is not known: JSON has no NaN."""
    told: list[float | None] = values.tolist()
    if (values != values).any():
        return [None if value != value else value for value in told]
    return told
