"""Puts rows, readings, notes and facts into the messages of telemetry.proto, and those into TensorBoard's events."""

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
from tb_bottleneck.schema.metadata import TELEMETRY_SCHEMA
from tb_bottleneck.schema.signals import HOST, PLUGIN_NAME
from tb_bottleneck.schema.telemetry_pb2 import Note, Packet, RunContext, Series, StepColumn, StepRows, Unsupported

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

Taken = tuple[int, Reading]
"""A reading and its moment, in nanoseconds since 1970."""


def packet(
    sequence: int, rows: Sequence[StepRow], offset_ns: int, readings: Sequence[Taken], notes: list[MonitorNote]
) -> Packet:
    """`offset_ns` turns the rows' clock into nanoseconds since 1970."""
    return Packet(
        schema=TELEMETRY_SCHEMA,
        sequence=sequence,
        series=_series(readings),
        steps=_steps(rows, offset_ns),
        notes=[_note(one) for one in notes],
    )


def context(facts: Mapping[str, object], missing: Mapping[str, str], notes: Iterable[MonitorNote]) -> RunContext:
    """The run's context. A fact that cannot be written as JSON is listed among what is missing."""
    message = RunContext(schema=TELEMETRY_SCHEMA, notes=[_note(one) for one in notes])
    unsupported = dict(missing)
    for name, value in facts.items():
        try:
            ParseDict({name: value}, one := Struct())
        except (ParseError, ValueError, TypeError):
            unsupported[name] = "what was found is not a JSON value"
            continue
        message.facts.MergeFrom(one)
    message.unsupported.extend(Unsupported(name=name, because=because) for name, because in sorted(unsupported.items()))
    return message


def scalars(rows: Sequence[StepRow], readings: Sequence[Taken]) -> dict[str, float]:
    """The handful for the stock Scalars tab, each the figure of the time since the last packet."""
    steady = [row for row in rows if not row.figures.get("profiled")] or list(rows)
    found: dict[str, float] = {}
    if steady:
        found["bottleneck/step_time_ms"] = median(row.working_ns for row in steady) / 1e6
    told = [row for row in steady if "loader_wait" in row.figures and row.working_ns > 0]
    if told:
        waited = sum(row.figures["loader_wait"] for row in told)
        found["bottleneck/loader_share"] = waited / sum(row.working_ns for row in told)
    counted = [row for row in steady if "samples" in row.figures and row.wall_ns > 0]
    if counted:
        samples = sum(row.figures["samples"] for row in counted)
        found["bottleneck/samples_per_second"] = samples / (sum(row.wall_ns for row in counted) / 1e9)
    for name, tag in (("gpu_utilisation", "gpu_utilisation"), ("memory_used", "gpu_memory_used_bytes")):
        values = [reading.value for _, reading in readings if reading.name == name and reading.device != HOST]
        if values:
            found[f"bottleneck/{tag}"] = fmean(values)
    cost = [reading.value for _, reading in readings if reading.name == "monitor_cost"]
    if cost:
        found["bottleneck/monitor_cost"] = fmean(cost)
    return found


def scalars_event(values: Mapping[str, float], step: int) -> "Event":
    """An event with simple scalars for plugin `scalars`."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    entries = [Summary.Value(tag=tag, simple_value=value, metadata=metadata) for tag, value in values.items()]
    return Event(wall_time=time.time(), step=step, summary=Summary(value=entries))


def message_event(tag: str, message: Any, step: int) -> "Event":
    """An event with a message as a tensor of one string, for plugin `tb_bottleneck`."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    metadata = SummaryMetadata(
        # Without it both loaders hide a plugin's own data.
        data_class=DATA_CLASS_TENSOR,
        plugin_data=SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME),
    )
    tensor = TensorProto(dtype=DT_STRING, string_val=[message.SerializeToString()])
    tensor.tensor_shape.SetInParent()
    value = Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
    return Event(wall_time=time.time(), step=step, summary=Summary(value=[value]))


def _series(readings: Sequence[Taken]) -> list[Series]:
    found: dict[tuple[str, str], Series] = {}
    for unix_ns, reading in readings:
        key = (reading.name, reading.device)
        if key not in found:
            found[key] = Series(name=reading.name, device=reading.device)
        found[key].unix_ns.append(unix_ns)
        found[key].values.append(reading.value)
    return list(found.values())


def _steps(rows: Sequence[StepRow], offset_ns: int) -> StepRows:
    names = [name for name in COLUMNS if any(name in row.figures for row in rows)]
    return StepRows(
        number=[row.number for row in rows],
        end_unix_ns=[row.end_ns + offset_ns for row in rows],
        wall_ns=[row.wall_ns for row in rows],
        columns=[StepColumn(name=name, values=[row.figures.get(name, math.nan) for row in rows]) for name in names],
    )


def _note(one: MonitorNote) -> Note:
    return Note(unix_ns=one.unix_ns, code=one.code, detail=one.detail)
