"""Writes telemetry as the monitor does: an event file with the run's context, packets, and the monitor's scalars."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG, PLUGIN_NAME
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext

NAME = "events.out.tfevents.1700000000.host.42.0"


def context(facts: Mapping[str, Any]) -> RunContext:
    """Returns a run's context with these facts."""
    made = RunContext(schema=1)
    made.facts.update(facts)
    return made


def event(tag: str, content: bytes) -> bytes:
    """Returns a serialized event that contains a tensor with one string."""
    made = Event(wall_time=1.7e9)
    value = made.summary.value.add(tag=tag)
    value.metadata.plugin_data.plugin_name = PLUGIN_NAME
    value.tensor.dtype = DT_STRING
    value.tensor.string_val.append(content)
    return made.SerializeToString()


def scalar(tag: str, number: float) -> bytes:
    """Returns a serialized event of TensorBoard's Scalars tab, which our reader must skip."""
    made = Event(wall_time=1.7e9)
    value = made.summary.value.add(tag=tag, simple_value=number)
    value.metadata.plugin_data.plugin_name = "scalars"
    return made.SerializeToString()


def events(messages: Iterable[RunContext | Packet]) -> Iterator[bytes]:
    """Yields the serialized events of these messages, with scalars in between."""
    yield Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString()
    for message in messages:
        tag = CONTEXT_TAG if isinstance(message, RunContext) else PACKET_TAG
        yield event(tag, message.SerializeToString())
        yield scalar("gpu/utilisation", 0.5)


def write(path: Path, messages: Iterable[RunContext | Packet]) -> Path:
    """Writes the messages to the file, or appends them if it exists; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        writer = RecordWriter(file)
        for content in events(messages):
            writer.write(content)
        writer.flush()
    return path
