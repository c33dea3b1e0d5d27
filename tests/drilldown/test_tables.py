"""Tests the tables of a drawn run: names, times, shares, problems, and waits by their place in the program."""

import json

import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tables import add_waits, tables_of
from tb_bottleneck.report.rendering.json_form import as_json
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.trace import load

# In each step the program waits for a kernel of three columns, and for another one of two.
WAITS = """
    step    aaaaaaaaaaaaaaabbbbbbbbbbbbbbb
    launch  |......|.......|......|.......
    sync    .####...###.....####...###....
    gpu     .###....##......###....##.....
"""
FRAMES = "python  .####...........####.........."


def waits(drawing):
    recording = InspectedTrace(drawn_trace(drawing)).recording
    tables = pb.Tables(window_ns=recording.steps.end - recording.steps.begin)
    add_waits(recording, tables)
    return tables.syncs


def test_waits_of_one_place_are_one_row():
    (row,) = waits(WAITS)
    assert (row.kind, row.operator, row.line) == ("explicit", "cudaStreamSynchronize", "")
    assert (row.calls, row.waited_ns) == (4, 1_400_000)
    assert row.share == pytest.approx(row.cost_ns / 3_000_000)


def test_waits_on_different_lines_have_rows_of_their_own_costliest_first():
    first, second = waits(WAITS + FRAMES)
    assert {first.line, second.line} == {"train.py(10): augment", ""}
    assert (first.calls, second.calls) == (2, 2)
    assert first.cost_ns >= second.cost_ns > 0


def test_on_the_cpu_nothing_is_waited_for():
    assert not waits("step aaaaabbbbb\nop .###..###.")


RUN = """
    step    aaaaaaaaaaaaaaabbbbbbbbbbbbbbb
    op      ##.............##.............
    launch  |.||...........|.||...........
    sync    ....####...........####.......
    gpu     .aa............aa.............
    stream  ....bbb............bbb........
    d2h     .......#..............#.......
"""


OVERLAPPING = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ##........##........
    launch  ||........||........
    gpu     .aaaaaaa...aaaaaaa..
    stream  ..bbbbbbb...bbbbbbb.
"""


@pytest.fixture(scope="module")
def tables():
    return tables_of(InspectedTrace(drawn_trace(RUN)))


def test_kernels_are_listed_by_their_time(tables):
    assert [(row.regime, row.calls, row.total_ns) for row in tables.kernels] == [
        ("memory", 2, 600_000),
        ("compute", 2, 400_000),
    ]
    assert all(row.share == pytest.approx(row.total_ns / tables.window_ns) for row in tables.kernels)
    assert all(row.mean_ns == row.total_ns / row.calls for row in tables.kernels)
    gemm = next(row for row in tables.kernels if "gemm" in row.name)
    assert (gemm.unit, gemm.precision) == ("tensor", "tf32")
    assert not gemm.HasField("reached"), "no shapes were recorded"


def test_overlapping_kernels_count_once_in_a_share(tmp_path):
    recording = drawn(OVERLAPPING, 1000)
    for event in recording["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] = "one"
    (tmp_path / "t.json").write_text(json.dumps(recording))
    overlapping = tables_of(InspectedTrace(load(str(tmp_path / "t.json"))))
    (kernel,), (operator,) = overlapping.kernels, overlapping.operators
    assert kernel.total_ns / overlapping.window_ns == pytest.approx(1.4)
    assert kernel.share == pytest.approx(0.8)
    assert operator.device_ns / overlapping.window_ns == pytest.approx(1.4)
    assert operator.share == pytest.approx(0.8)


def test_operators_have_host_time_of_their_own_and_time_of_their_kernels(tables):
    (linear,) = tables.operators
    assert (linear.name, linear.calls) == ("aten::linear", 2)
    assert linear.device_ns > 0
    assert linear.host_ns == 2 * 200_000


def test_copies_are_listed_by_kind_with_their_rate(tables):
    (copy,) = tables.copies
    assert copy.name.startswith("Memcpy DtoH")
    assert copy.bytes == copy.calls * (1 << 20)
    assert copy.bytes_per_s == pytest.approx((1 << 20) / 100_000 * 1e9)


def test_the_roofline_says_what_to_record(tables):
    assert "shapes" in tables.roofline.problem
    assert "record_shapes=True" in tables.roofline.fix
    assert not tables.roofline.points


def test_each_steps_account_sums_to_the_window(tables):
    columns = tables.step_account
    assert sum(columns.steps) == tables.steps
    total = sum(ns * steps for regime in columns.regimes for ns, steps in zip(regime.ns, columns.steps, strict=True))
    assert total == pytest.approx(tables.window_ns)


def test_the_longest_occurrence_is_pointed_at(tables):
    for row in (*tables.kernels, *tables.operators, *tables.copies, *tables.syncs):
        assert row.end_ns > row.begin_ns


def test_it_has_a_json_form_and_a_recording_of_nothing_too(tmp_path):
    (tmp_path / "t.json").write_text('{"traceEvents": []}')
    assert as_json(tables_of(InspectedTrace(load(str(tmp_path / "t.json")))))
    assert as_json(tables_of(InspectedTrace(drawn_trace(RUN))))
