"""Encodes rows, readings, notes and facts as messages of telemetry.proto, and these as TensorBoard events."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.struct_pb2 import Struct

from tb_bottleneck.monitor.guard import MonitorNote
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps.step_rows import COLUMNS, StepRow
from tb_bottleneck.schema.compile_log import TELEMETRY_SCHEMA
from tb_bottleneck.schema.signals import HOST, PLUGIN_NAME
from tb_bottleneck.schema.telemetry_pb2 import Note, Packet, RunContext, Series, StepColumn, StepRows, Unsupported

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

TimedReading = tuple[int, Reading]
"""A time in nanoseconds since 1970, and a reading."""


def packet(
    sequence: int, rows: Sequence[StepRow], offset_ns: int, readings: Sequence[TimedReading], notes: list[MonitorNote]
) -> Packet:
    """Returns a packet. `offset_ns` converts the rows' clock to nanoseconds since 1970."""
    return Packet(
        schema=TELEMETRY_SCHEMA,
        sequence=sequence,
        series=_series(readings),
        steps=_steps(rows, offset_ns),
        notes=[_note(note) for note in notes],
    )


def context(facts: Mapping[str, object], missing: Mapping[str, str], notes: Iterable[MonitorNote]) -> RunContext:
    """Returns the run's context. A fact that is not a JSON value is listed as missing."""
    message = RunContext(schema=TELEMETRY_SCHEMA, notes=[_note(note) for note in notes])
    unsupported = dict(missing)
    for name, value in facts.items():
        try:
            ParseDict({name: value}, fact := Struct())
        except (ParseError, ValueError, TypeError):
            unsupported[name] = "its value is not a JSON value"
            continue
        message.facts.MergeFrom(fact)
    message.unsupported.extend(Unsupported(name=name, because=because) for name, because in sorted(unsupported.items()))
    return message


def scalars(rows: Sequence[StepRow], readings: Sequence[TimedReading]) -> dict[str, float]:
    """Returns the few scalars for TensorBoard's own Scalars tab, each over the time since the last packet."""
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


def scalars_event(values: Mapping[str, float], step: int) -> "Event":
    """Returns an event with simple scalars for plugin `scalars`."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    entries = [Summary.Value(tag=tag, simple_value=value, metadata=metadata) for tag, value in values.items()]
    return Event(wall_time=time.time(), step=step, summary=Summary(value=entries))


def message_event(tag: str, message: Any, step: int) -> "Event":
    """Returns an event with a message as a tensor of one string, for plugin `tb_bottleneck`."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    metadata = SummaryMetadata(
        # Without it, both of TensorBoard's loaders hide a plugin's own data.
        data_class=DATA_CLASS_TENSOR,
        plugin_data=SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME),
    )
    tensor = TensorProto(dtype=DT_STRING, string_val=[message.SerializeToString()])
    tensor.tensor_shape.SetInParent()
    value = Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
    return Event(wall_time=time.time(), step=step, summary=Summary(value=[value]))


def _series(readings: Sequence[TimedReading]) -> list[Series]:
    series: dict[tuple[str, str], Series] = {}
    for unix_ns, reading in readings:
        key = (reading.name, reading.device)
        if key not in series:
            series[key] = Series(name=reading.name, device=reading.device)
        series[key].unix_ns.append(unix_ns)
        series[key].values.append(reading.value)
    return list(series.values())


def _steps(rows: Sequence[StepRow], offset_ns: int) -> StepRows:
    names = [name for name in COLUMNS if any(name in row.figures for row in rows)]
    return StepRows(
        number=[row.number for row in rows],
        end_unix_ns=[row.end_ns + offset_ns for row in rows],
        wall_ns=[row.wall_ns for row in rows],
        columns=[StepColumn(name=name, values=[row.figures.get(name, math.nan) for row in rows]) for name in names],
        steps=[row.steps for row in rows] if any(row.steps > 1 for row in rows) else [],
    )


def _note(note: MonitorNote) -> Note:
    return Note(unix_ns=note.unix_ns, code=note.code, detail=note.detail)
