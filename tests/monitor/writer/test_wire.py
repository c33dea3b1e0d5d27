"""What the monitor encodes itself is what protobuf and TensorBoard would have written."""

import math

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as some
from tensorboard.compat.proto.event_pb2 import Event, SourceMetadata
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_bottleneck.monitor.guard import MonitorNote
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.monitor.writer import encode, wire
from tb_bottleneck.schema.telemetry_pb2 import Note, Packet, Series, StepColumn, StepRows

JSON = some.recursive(
    some.none() | some.booleans() | some.floats(allow_nan=False, allow_infinity=False) | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_a_packet_is_the_one_that_protobuf_writes() -> None:
    rows = [StepRow(300, -5, 20, {"backward": 5.0}), StepRow(301, 2, 10, {"samples": 0.0}, steps=300)]
    written = encode.packet(129, rows, 10, [(1, Reading("power", 0.0, "GPU-1"))], [MonitorNote(7, "ended", "é")])
    steps = StepRows(
        number=[300, 301],
        end_unix_ns=[5, 12],
        wall_ns=[20, 10],
        columns=[
            StepColumn(name=name, values=[row.figures.get(name, math.nan) for row in rows])
            for name in encode.COLUMNS
            if name in ("backward", "samples")
        ],
        steps=[1, 300],
    )
    expected = Packet(
        schema=encode.TELEMETRY_SCHEMA,
        sequence=129,
        series=[Series(name="power", device="GPU-1", unix_ns=[1], values=[0.0])],
        steps=steps,
        notes=[Note(unix_ns=7, code="ended", detail="é")],
    )
    assert written == expected.SerializeToString(deterministic=True)


def test_events_are_those_that_tensorboard_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode.time, "time", lambda: 1.5)
    head = Event(
        wall_time=1.5,
        file_version="brain.Event:2",
        source_metadata=SourceMetadata(writer="tb_bottleneck.monitor"),
    )
    assert Event.FromString(encode.first_event()) == head

    plugin = SummaryMetadata.PluginData(plugin_name="scalars")
    value = Summary.Value(tag="a", simple_value=0.0, metadata=SummaryMetadata(plugin_data=plugin))
    assert Event.FromString(encode.scalars_event({"a": 0.0}, 3)) == Event(
        wall_time=1.5, step=3, summary=Summary(value=[value])
    )

    tensor = TensorProto(dtype=DT_STRING, string_val=[b"x"])
    tensor.tensor_shape.SetInParent()
    metadata = SummaryMetadata(
        data_class=DATA_CLASS_TENSOR, plugin_data=SummaryMetadata.PluginData(plugin_name="tb_bottleneck")
    )
    value = Summary.Value(tag="t", tensor=tensor, metadata=metadata)
    assert Event.FromString(encode.message_event("t", b"x", 0)) == Event(wall_time=1.5, summary=Summary(value=[value]))


@given(some.dictionaries(some.text(max_size=5), JSON, max_size=3))
def test_any_json_object_becomes_a_struct(facts: dict[object, object]) -> None:
    expected = Struct()
    expected.update(facts)  # type: ignore[arg-type]
    assert Struct.FromString(wire.json_struct(facts)) == expected


@given(some.binary(max_size=40))
def test_a_record_is_the_one_of_tensorboards_writer(data: bytes) -> None:
    class File:
        written = b""

        def write(self, part: bytes) -> None:
            self.written += part

    file = File()
    RecordWriter(file).write(data)
    assert wire.record(data) == file.written


def test_text_that_utf8_cannot_encode_loses_one_character_and_not_the_packet() -> None:
    note = MonitorNote(7, "dropped", "a \ud800 name")
    assert Packet.FromString(encode.packet(0, [], 0, [], [note])).notes[0].detail == "a ? name"
