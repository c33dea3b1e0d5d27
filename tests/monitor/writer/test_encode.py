"""Rows, readings, notes and facts in the messages of telemetry.proto."""

import math

from google.protobuf.json_format import MessageToDict

from tb_bottleneck.monitor.guard import MonitorNote
from tb_bottleneck.monitor.samplers.sampler import Reading
from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.monitor.writer import encode
from tb_bottleneck.schema.signals import SERIES, STEP_COLUMNS
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext

MS = 1_000_000


def row(number: int, **figures: float) -> StepRow:
    return StepRow(number, 1000 + number, 10 * MS, figures)


def test_an_unknown_figure_is_nan_and_an_unknown_column_is_absent() -> None:
    packet = Packet.FromString(encode.packet(3, [row(0, backward=5.0), row(1, samples=8.0)], 1_000_000, [], []))
    columns = {one.name: list(one.values) for one in packet.steps.columns}
    assert set(columns) == {"backward", "samples"}
    assert columns["backward"][0] == 5
    assert math.isnan(columns["backward"][1])
    assert list(packet.steps.end_unix_ns) == [1_001_000, 1_001_001]
    assert packet.sequence == 3


def test_readings_are_packed_by_signal_and_device() -> None:
    readings = [
        (1, Reading("power", 300, "GPU-1")),
        (2, Reading("power", 310, "GPU-1")),
        (2, Reading("power", 90, "GPU-2")),
    ]
    packet = Packet.FromString(encode.packet(0, [], 0, readings, [MonitorNote(7, "dropped", "…")]))
    assert {(one.name, one.device): list(one.values) for one in packet.series} == {
        ("power", "GPU-1"): [300, 310],
        ("power", "GPU-2"): [90],
    }
    assert (packet.notes[0].unix_ns, packet.notes[0].code) == (7, "dropped")


def test_what_is_written_is_declared() -> None:
    assert set(encode.COLUMNS) == set(STEP_COLUMNS)
    assert {"monitor_cost", "gpu_utilisation", "memory_used"} <= set(SERIES)


def test_a_fact_that_is_no_json_value_is_missing_and_the_others_stay() -> None:
    nested = {"a": [1, "b", None, {}, [], True, -0.5], "": ""}
    odd = {"odd": object(), "nan": math.nan, "huge": 10**400, "numbered": {1: 2}, "half": "\ud800"}
    written = encode.context({"cores": 8, "nested": nested} | odd, {"power": "no driver"}, [])
    result = RunContext.FromString(written)
    assert MessageToDict(result.facts) == {"cores": 8, "nested": nested}
    because = dict.fromkeys(odd, "its value is not a JSON value") | {"power": "no driver"}
    assert {one.name: one.because for one in result.unsupported} == because


def test_scalars_are_of_the_steps_that_nothing_slowed() -> None:
    rows = [
        row(0, loader_wait=2 * MS, samples=8, profiled=0),
        row(1, loader_wait=4 * MS, samples=8, profiled=0),
        StepRow(2, 0, 500 * MS, {"loader_wait": 0, "samples": 8, "profiled": 1}),
    ]
    result = encode.scalars(
        rows, [(0, Reading("gpu_utilisation", 0.5, "GPU-1")), (0, Reading("memory_used", 3e9, "GPU-1"))]
    )
    assert result == {
        "bottleneck/step_time_ms": 10,
        "bottleneck/loader_share": 0.3,
        "bottleneck/samples_per_second": 800,
        "bottleneck/gpu_utilisation": 0.5,
        "bottleneck/gpu_memory_used_bytes": 3e9,
    }


def test_without_steps_and_readings_there_are_no_scalars() -> None:
    assert encode.scalars([], []) == {}
    assert "bottleneck/loader_share" not in encode.scalars([row(0)], [])
