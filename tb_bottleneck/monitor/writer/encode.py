"""Encodes rows, readings, notes and facts as messages of telemetry.proto, and these messages as TensorBoard events.

The numbers of the fields are those of schema/telemetry.proto, and of event.proto, summary.proto and tensor.proto in
tensorboard/compat/proto. Each function returns the bytes of a message.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from tb_bottleneck.monitor.guard import MonitorNote
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps.row_queue import COLUMNS, StepRow
from tb_bottleneck.monitor.writer.wire import (
    NotJson,
    double,
    doubles,
    integer,
    integers,
    json_struct,
    message,
    single,
    text,
)
from tb_bottleneck.schema.signals import HOST, PLUGIN_NAME
from tb_bottleneck.version import TELEMETRY_SCHEMA

_DATA_CLASS_TENSOR, _DT_STRING = 2, 7

TimedReading = tuple[int, Reading]
"""A time in nanoseconds since 1970, and a reading."""


def packet(
    sequence: int, rows: Sequence[StepRow], offset_ns: int, readings: Sequence[TimedReading], notes: list[MonitorNote]
) -> bytes:
    """Returns a Packet message with the steps `rows`, the readings of the samplers, and the notes. `sequence` is the
    number of the packet. `offset_ns` is added to the times of `rows`, which converts them to ns since 1970."""
    return (
        integer(1, TELEMETRY_SCHEMA)
        + integer(2, sequence)
        + _series(readings)
        + message(4, _steps(rows, offset_ns))
        + _notes(5, notes)
    )


def context(facts: Mapping[str, object], missing: Mapping[str, str], notes: Iterable[MonitorNote]) -> bytes:
    """Returns the RunContext message of the run. `missing` has the reason for each missing signal, by the signal's
    name. A fact that is not a JSON value is listed as missing, too."""
    known, unsupported = b"", dict(missing)
    for name, value in facts.items():
        try:
            known += json_struct({name: value})
        except NotJson:
            unsupported[name] = "its value is not a JSON value"
    listed = [message(3, text(1, name) + text(2, because)) for name, because in sorted(unsupported.items())]
    return integer(1, TELEMETRY_SCHEMA) + message(2, known) + b"".join(listed) + _notes(4, notes)


def scalars(rows: Sequence[StepRow], readings: Sequence[TimedReading]) -> dict[str, float]:
    """Returns {tag: value} for TensorBoard's Scalars tab. `rows` and `readings` are those since the last packet.
    Profiled steps count only if there are no others."""
    steady = [row for row in rows if not row.figures.get("profiled")] or list(rows)
    values_by_tag: dict[str, float] = {}
    if steady:
        values_by_tag["bottleneck/step_time_ms"] = median(row.working_ns for row in steady) / 1e6
    with_wait = [row for row in steady if "loader_wait" in row.figures and row.working_ns > 0]
    if with_wait:
        waited = sum(row.figures["loader_wait"] for row in with_wait)
        values_by_tag["bottleneck/loader_share"] = waited / sum(row.working_ns for row in with_wait)
    with_samples = [row for row in steady if "samples" in row.figures and row.wall_ns > 0]
    if with_samples:
        samples = sum(row.figures["samples"] for row in with_samples)
        values_by_tag["bottleneck/samples_per_second"] = samples / (sum(row.wall_ns for row in with_samples) / 1e9)
    for name, tag in (("gpu_utilisation", "gpu_utilisation"), ("memory_used", "gpu_memory_used_bytes")):
        values = [reading.value for _, reading in readings if reading.name == name and reading.device != HOST]
        if values:
            values_by_tag[f"bottleneck/{tag}"] = fmean(values)
    cost = [reading.value for _, reading in readings if reading.name == "monitor_cost"]
    if cost:
        values_by_tag["bottleneck/monitor_cost"] = fmean(cost)
    return values_by_tag


def scalars_event(values: Mapping[str, float], step: int) -> bytes:
    """Returns an Event for TensorBoard's plugin `scalars`, with the scalars `values` (by tag) and the step number
    `step`."""
    metadata = message(1, text(1, "scalars"))
    return _event(step, [text(1, tag) + single(2, value) + message(9, metadata) for tag, value in values.items()])


def message_event(tag: str, content: bytes, step: int) -> bytes:
    """Returns an Event with the tag `tag` and the step number `step`. It has the message `content` as a tensor of one
    string, for the plugin `tb_bottleneck`."""
    # Without the data class, both data loaders of TensorBoard (Python and Rust) hide a plugin's own data.
    metadata = message(1, text(1, PLUGIN_NAME)) + integer(4, _DATA_CLASS_TENSOR)
    tensor = integer(1, _DT_STRING) + message(2, b"") + message(8, content)
    return _event(step, [text(1, tag) + message(8, tensor) + message(9, metadata)])


def first_event() -> bytes:
    """Returns the Event that every event file begins with."""
    return double(1, time.time()) + text(3, "brain.Event:2") + message(10, text(1, "tb_bottleneck.monitor"))


def _event(step: int, values: Iterable[bytes]) -> bytes:
    summary = b"".join(message(1, value) for value in values)
    return double(1, time.time()) + integer(2, step) + message(5, summary)


def _series(readings: Sequence[TimedReading]) -> bytes:
    series: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for unix_ns, reading in readings:
        times, values = series.setdefault((reading.name, reading.device), ([], []))
        times.append(unix_ns)
        values.append(reading.value)
    return b"".join(
        message(3, text(1, name) + text(2, device) + doubles(3, times) + doubles(4, values))
        for (name, device), (times, values) in series.items()
    )


def _steps(rows: Sequence[StepRow], offset_ns: int) -> bytes:
    names = [name for name in COLUMNS if any(name in row.figures for row in rows)]
    return (
        integers(1, [row.number for row in rows])
        + doubles(2, [row.end_ns + offset_ns for row in rows])
        + doubles(3, [row.wall_ns for row in rows])
        + b"".join(
            message(4, text(1, name) + doubles(2, [row.figures.get(name, math.nan) for row in rows])) for name in names
        )
        + integers(5, [row.steps for row in rows] if any(row.steps > 1 for row in rows) else [])
    )


def _notes(field: int, notes: Iterable[MonitorNote]) -> bytes:
    return b"".join(
        message(field, double(1, note.unix_ns) + text(2, note.code) + text(3, note.detail)) for note in notes
    )
