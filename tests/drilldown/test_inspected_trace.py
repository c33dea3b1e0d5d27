"""Tests of the trace cache: a trace stays in memory until newer ones take its place."""

import json

from helpers.draw import drawn

from tb_bottleneck.drilldown import inspected_trace
from tb_bottleneck.drilldown.inspected_trace import TraceCache

RUN = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ....##........##....
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


def test_a_trace_stays_in_memory_until_others_take_its_place(tmp_path, monkeypatch):
    read = []
    real = inspected_trace.load
    monkeypatch.setattr(inspected_trace, "load", lambda path, progress: read.append(path) or real(path, progress))
    monkeypatch.setattr(inspected_trace, "MAX_CACHED_EVENTS", 20)
    cache = TraceCache()
    for name in ("a", "b", "c", "a"):
        (tmp_path / name).write_text(json.dumps(drawn(RUN)))
        cache.get(str(tmp_path / name), 1, None)
        cache.get(str(tmp_path / name), 1, None)
    assert [path[-1] for path in read] == ["a", "b", "c", "a"]
