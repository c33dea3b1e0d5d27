"""Untrusted telemetry files: no content crashes the reader, plausible values are used, the rest is counted."""

import math

import numpy as np
import pytest
from helpers.telemetry_files import context
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.diagnosis.telemetry import TelemetryReader, judge_telemetry
from tb_bottleneck.schema.signals import SERIES, STEP_COLUMNS
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext
from tb_bottleneck.telemetry.telemetry import MAX_STEP_TIME_NS, MAX_STEPS_PER_ROW, MAX_TELEMETRY_DEVICES, Telemetry

T = 1.7e18


def packet(sequence: int = 0, **series: tuple[list[float], list[float]]) -> Packet:
    made = Packet(schema=1, sequence=sequence)
    for name, (when, values) in series.items():
        made.series.add(name=name, device="GPU-1", unix_ns=when, values=values)
    return made


def taken(*messages: RunContext | Packet) -> Telemetry:
    telemetry = Telemetry()
    telemetry.add(messages)
    return telemetry


def values_of(telemetry: Telemetry, name: str) -> list[float]:
    return telemetry.series[name, "GPU-1"].column("value").mean.tolist()


def test_packets_left_out_are_counted_and_repeated_ones_are_not_taken_twice() -> None:
    telemetry = taken(packet(0), packet(3), packet(3, power=([T], [1.0])), packet(4))
    assert telemetry.lost_packets == 2
    assert telemetry.dropped == {"repeated": 1}
    assert not telemetry.series


def test_impossible_readings_are_left_out_and_counted() -> None:
    when = [T, T + 1e9, T + 2e9, T + 3e9, T + 4e9]
    telemetry = taken(packet(power=(when, [1.0, math.nan, math.inf, -5.0, 2.0])))
    assert values_of(telemetry, "power") == [1.0, 2.0]
    assert telemetry.dropped["implausible"] == 3


def test_times_that_go_back_are_left_out_and_counted() -> None:
    telemetry = taken(packet(power=([T + 5e9, T, T + 6e9, math.nan, 1e30], [1.0, 2.0, 3.0, 4.0, 5.0])))
    telemetry.add([packet(1, power=([T + 5e9], [9.0]))])
    assert values_of(telemetry, "power") == [1.0, 3.0]
    assert telemetry.dropped["out_of_order"] == 4


def test_names_and_lengths_that_do_not_fit_are_counted() -> None:
    telemetry = taken(packet(no_such=([T], [1.0]), power=([T, T + 1], [1.0])))
    assert not telemetry.series
    assert telemetry.dropped == {"unknown_name": 1, "lengths_differ": 1}


def test_the_number_of_devices_in_a_file_is_bounded() -> None:
    made = Packet()
    for number in range(1000):
        made.series.add(name="power", device=f"GPU-{number}", unix_ns=[T], values=[1.0])
    telemetry = taken(made)
    assert len(telemetry.devices) == MAX_TELEMETRY_DEVICES
    assert telemetry.dropped["too_many_devices"] == 1000 - MAX_TELEMETRY_DEVICES


def test_a_share_above_one_is_one() -> None:
    assert values_of(taken(packet(gpu_utilisation=([T], [1.3]))), "gpu_utilisation") == [1.0]


def test_impossible_steps_are_left_out() -> None:
    made = Packet()
    made.steps.number.extend([0, 1, 2, 3])
    made.steps.end_unix_ns.extend([T, T + 1e9, T + 5e8, T + 2e9])
    made.steps.wall_ns.extend([1e9, -1.0, 1e9, 1e9])
    made.steps.columns.add(name="loader_wait", values=[1e6, 1e6, 1e6, math.inf])
    made.steps.columns.add(name="forward", values=[1e6])
    telemetry = taken(made)
    assert telemetry.steps.column("number").mean.tolist() == [0, 3]
    assert np.isnan(telemetry.steps.column("loader_wait").mean[1])
    assert telemetry.dropped["implausible"] == 2
    assert telemetry.dropped["lengths_differ"] == 1


def test_a_row_may_be_the_mean_of_several_steps() -> None:
    made = Packet()
    made.steps.number.extend([0, 8])
    made.steps.end_unix_ns.extend([T, T + 1e9])
    made.steps.wall_ns.extend([1e9, 2e8])
    made.steps.steps.extend([1, 5])
    telemetry = taken(made, steps_of_one_row(5))
    assert telemetry.steps.count.tolist() == [1, 5, 5]
    made.steps.steps.append(1)
    assert taken(made).dropped == {"lengths_differ": 1}


def steps_of_one_row(count: int) -> Packet:
    made = Packet(sequence=1)
    made.steps.number.append(20)
    made.steps.end_unix_ns.append(T + 2e9)
    made.steps.wall_ns.append(2e8)
    made.steps.steps.append(count)
    return made


@pytest.mark.parametrize("count", [0, -3, MAX_STEPS_PER_ROW + 1])
def test_a_row_of_an_impossible_number_of_steps_is_left_out(count: int) -> None:
    telemetry = taken(steps_of_one_row(count))
    assert not len(telemetry.steps)
    assert telemetry.dropped == {"implausible": 1}


def test_the_time_of_all_steps_of_a_row_is_bounded() -> None:
    made = steps_of_one_row(1000)
    made.steps.wall_ns[0] = MAX_STEP_TIME_NS / 999
    assert taken(made).dropped == {"implausible": 1}


def test_a_context_with_invalid_numbers_is_not_used() -> None:
    telemetry = taken(context({"cores": 4}), context({"cores": math.nan}), context({"text": "x" * (2 << 20)}))
    assert telemetry.facts == {"cores": 4.0}
    assert telemetry.dropped == {"implausible": 1, "too_large": 1}


NUMBERS = st.floats() | st.sampled_from([0.0, T, T + 1e9, 1e300, -1.0])
COLUMNS = st.lists(NUMBERS, max_size=5)
INTEGERS = st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=5)
NAMES = st.sampled_from([*SERIES, *STEP_COLUMNS, "", "no such"])


@given(
    series=st.lists(st.tuples(NAMES, st.text(max_size=3), COLUMNS, COLUMNS), max_size=8),
    steps=st.tuples(INTEGERS, COLUMNS, COLUMNS, INTEGERS | st.lists(st.integers(1, 100), max_size=5)),
    columns=st.lists(st.tuples(NAMES, COLUMNS), max_size=3),
    sequence=st.integers(-(1 << 31), (1 << 31) - 1),
    facts=st.dictionaries(
        st.text(max_size=12) | st.sampled_from(["cores", "blas_pools", "rank", "device_name"]),
        NUMBERS | st.text(max_size=5) | COLUMNS,
        max_size=4,
    ),
)
def test_any_file_content_gives_a_report(series, steps, columns, sequence, facts) -> None:
    made = Packet(sequence=sequence)
    for name, device, when, values in series:
        made.series.add(name=name, device=device, unix_ns=when, values=values)
    number, end, wall, count = steps
    made.steps.number.extend(number)
    made.steps.end_unix_ns.extend(end)
    made.steps.wall_ns.extend(wall)
    made.steps.steps.extend(count)
    for name, values in columns:
        made.steps.columns.add(name=name, values=values)
    reader = TelemetryReader("/no/such/file")
    reader.telemetry.add([context(facts), made])
    report = judge_telemetry(reader)
    assert report.health.status in ("ok", "degraded", "incomplete")
    assert not report.account or abs(sum(row.share for row in report.account) - 1) < 1e-9


def test_a_run_has_ended_if_the_monitors_last_note_says_so() -> None:
    last, more = packet(1), packet(2)
    last.notes.add(unix_ns=1.7e18, code="ended")
    assert not taken(packet(0)).ended
    assert taken(packet(0), last).ended
    assert not taken(packet(0), last, more).ended
