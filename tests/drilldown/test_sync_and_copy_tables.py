"""The table of waits, grouped by place in the program, with the user's line if frames were recorded."""

import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tables import add_waits
from tb_bottleneck.schema import evidence_pb2 as pb

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
