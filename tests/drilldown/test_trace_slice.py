"""A slice: a trace that our reader and any other can read, without the metadata of the file."""

import gzip
import json

import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.drilldown import trace_slice
from tb_bottleneck.drilldown.trace_slice import slice_of
from tb_bottleneck.trace.trace import load

RUN = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ....##........##....
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


def events(content):
    return [event for event in content["traceEvents"] if event["ph"] == "X"]


def cut(begin, end, **header):
    return json.loads(gzip.decompress(slice_of(drawn_trace(RUN, **header), begin, end)))


def test_everything_is_in_a_slice_of_everything():
    assert len(events(cut(0, 2_000_000))) == len(drawn(RUN)["traceEvents"])


def test_only_what_reaches_into_the_range():
    names = {event["name"].split("#")[0] for event in events(cut(600_000, 700_000))}
    assert len(names) == 2, names  # the step and the kernel
    assert any("gemm" in name for name in names)


def test_launches_are_linked_to_their_kernels_by_flows():
    flows = [event for event in cut(0, 2_000_000)["traceEvents"] if event["ph"] in "sf"]
    assert len(flows) == 4
    assert {event["cat"] for event in flows} == {"ac2g"}


def test_our_own_reader_reads_it(tmp_path):
    (tmp_path / "slice.json.gz").write_bytes(slice_of(drawn_trace(RUN), 0, 2_000_000))
    again, before = load(str(tmp_path / "slice.json.gz")), drawn_trace(RUN)
    assert again.events.start.tolist() == before.events.start.tolist()
    assert len(again.device_ops) == len(before.device_ops)
    assert again.device_ops.launched.all()


def test_the_header_is_not_copied():
    assert "secret" not in json.dumps(cut(0, 2_000_000, host_name="secret", distributedInfo={"user": "secret"}))


def test_too_many_events_are_left_out_shortest_first_and_counted(monkeypatch):
    monkeypatch.setattr(trace_slice, "MAX_SLICE_EVENTS", 3)
    content = cut(0, 2_000_000)
    assert len(events(content)) == 3
    assert content["events_left_out"] == len(drawn(RUN)["traceEvents"]) - 3
    assert min(event["dur"] for event in events(content)) == pytest.approx(500)
