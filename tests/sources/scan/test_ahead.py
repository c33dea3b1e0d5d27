"""Groups of blocks are scanned at the same time, in bounded number, and return what one thread returns."""

import json
import os
import threading
from importlib.util import find_spec

import pytest
from helpers.readers import all_of, differences

from tb_bottleneck import native
from tb_bottleneck.base.errors import TooLarge
from tb_bottleneck.sources.blocks import Bounds
from tb_bottleneck.sources.kineto import KinetoReader
from tb_bottleneck.sources.scan import ahead
from tb_bottleneck.trace.events import EventsBuilder

pytestmark = pytest.mark.skipif(
    find_spec("tb_bottleneck.native.scanner") is None, reason="built without the native scanner"
)
SMALL = Bounds(block=500)


def events(count):
    for number in range(count):
        shape = {"Input Dims": [[number % 50]]}
        usual = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 1}
        yield {**usual, "name": f"op{number % 300}", "ts": number, "args": shape}


def file_of(tmp_path, text):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": ' + text + "}")
    os.utime(path, (1e9, 1e9))
    return str(path)


@pytest.fixture
def four_threads(monkeypatch):
    monkeypatch.setattr(ahead, "usable_cores", lambda: 4)


def test_four_groups_are_scanned_at_the_same_time(tmp_path, four_threads, monkeypatch):
    """Each scan waits for three others: with fewer threads the barrier would break."""
    barrier, scan, running = threading.Barrier(4, timeout=30), native.native_scan(), []

    def together(lists, categories, exact):
        if threading.current_thread() is not threading.main_thread() and len(running) < 8:
            running.append(threading.current_thread())
            barrier.wait()
        return scan(lists, categories, exact)

    monkeypatch.setattr("tb_bottleneck.sources.kineto.native_scan", lambda: together)
    path = file_of(tmp_path, json.dumps(list(events(4_000))))
    assert len(all_of(path, "native", SMALL)["Events.start"]) == 4_000
    assert len(set(running)) >= 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tb_bottleneck reader")]


@pytest.mark.parametrize(
    "damage", ["", '"ts": NaN,', '"ts": 5.5e3,', '"ts": 5,,', '"ts": "x\\u0041",', '"ts": 9e12}, {']
)
def test_threads_return_what_the_pure_reader_returns(tmp_path, four_threads, damage):
    text = json.dumps(list(events(3_000)))
    for number in (700, 701, 1_500, 2_900):
        text = text.replace(f'"ts": {number},', damage or f'"ts": {number},')
    assert differences(file_of(tmp_path, text), SMALL) == []


def test_absolute_times_that_begin_in_the_middle(tmp_path, four_threads):
    rows = [{**event, "ts": event["ts"] + (1.7e15 + 0.25 if event["ts"] > 1_000 else 0.5)} for event in events(2_000)]
    assert differences(file_of(tmp_path, json.dumps(rows)), SMALL) == []


def test_few_groups_are_in_memory(tmp_path, four_threads, monkeypatch):
    waiting, most = set(), []
    original = ahead.ScanAhead._fill

    def counted(self):
        original(self)
        waiting.update(id(flight) for flight in self._flights)
        most.append(sum(len(flight.blocks) for flight in self._flights) + len(self._returned))

    monkeypatch.setattr(ahead.ScanAhead, "_fill", counted)
    all_of(file_of(tmp_path, json.dumps(list(events(6_000)))), "native", SMALL)
    assert len(waiting) > 20
    assert max(most) <= 5 * ahead.LARGEST_GROUP


def test_a_reader_that_is_left_ends_its_threads(tmp_path, four_threads):
    path = file_of(tmp_path, json.dumps(list(events(6_000))))
    builder = EventsBuilder()
    reader = KinetoReader(path, bounds=Bounds(block=500, events=3_000), categories=builder.categories)
    with pytest.raises(TooLarge):
        list(reader.batches())
    del reader
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tb_bottleneck reader")]


def test_a_small_file_starts_no_thread(tmp_path, four_threads, monkeypatch):
    monkeypatch.setattr(ahead.ScanAhead, "_start_threads", lambda self: pytest.fail("threads were started"))
    assert len(all_of(file_of(tmp_path, json.dumps(list(events(3_000)))), "native")["Events.start"]) == 3_000
