"""The table of events: order, units, interned strings, and lost parts."""

import time
import tracemalloc

import numpy as np
import pytest

from tb_bottleneck.sources.trace_event import Args, Event
from tb_bottleneck.trace import events
from tb_bottleneck.trace.columns.labels import MAX_NAME
from tb_bottleneck.trace.events import EventsBuilder
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.trace import load


def event(name="op", ts=1.0, dur=1.0, cat="cpu_op", **more):
    return Event(ph="X", cat=cat, name=name, pid=1, tid=1, ts=ts, dur=dur, **more)


def built(*batches):
    builder = EventsBuilder()
    for batch in batches:
        builder.add(batch)
    return builder, builder.build()


def names_of(builder, table):
    return [builder.names()[row] for row in table.name]


def test_rows_are_sorted_by_start_then_the_longest_then_file_order():
    first = [event("late", 9.0), event("child", 1.0, 2.0), event("parent", 1.0, 5.0)]
    builder, table = built(first, [event("twin", 1.0, 2.0), event("early", 0.5)])
    assert names_of(builder, table) == ["early", "parent", "child", "twin", "late"]


def test_times_are_nanoseconds():
    _, table = built([event(ts=1.001, dur=0.25), event(ts="2.0005", dur=3)])
    assert table.start.tolist() == [1_001, 2_000]
    assert table.duration.tolist() == [250, 3_000]
    assert table.end.tolist() == [1_251, 5_000]


def test_columns_are_int64_and_cannot_be_written():
    """They are stored narrower."""
    for _, table in (built(), built([event()]), built([event(name=str(n)) for n in range(300)], [event(dur=1e11)])):
        for name in table.__dataclass_fields__:
            column = getattr(table, name)
            assert column[:].dtype == np.int64, name
            with pytest.raises((TypeError, ValueError)):
                column[:0] = 0


def test_words_are_interned_once():
    rows = [event("a"), event("b"), event("a"), event(None), event(7), event("7")]
    builder, table = built(rows[:3], rows[3:])
    assert builder.names() == ("a", "b", "", "7")
    assert sorted(table.name.tolist()) == [0, 0, 1, 2, 3, 3]


def test_only_the_beginning_of_a_very_long_name_is_kept():
    builder, table = built([event("x" * 10_000_000), event("x" * MAX_NAME), event("x" * (MAX_NAME - 1))])
    assert [len(name) for name in builder.names()] == [MAX_NAME, MAX_NAME - 1]
    assert table.name.tolist() == [0, 0, 1]


def test_the_text_of_a_very_long_name_is_freed():
    tracemalloc.start()
    try:
        builder, _ = built([event("x" * 10_000_000)])
        assert len(builder.names()[0]) == MAX_NAME
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_same_thread_however_it_is_written():
    rows = [Event(ph="X", pid=pid, tid=tid, ts=1.0) for pid, tid in ((1, 2), ("1", "2"), (1.0, 2.0), (1, "two"))]
    names = [Event(ph="M", name="thread_name", pid="1", tid=2.0, args=Args(name="main"))]
    builder, table = built(rows, names)
    assert [(row.process, row.thread, row.name) for row in builder.threads()] == [("1", "2", "main"), ("1", "two", "")]
    assert table.thread.tolist() == [0, 0, 0, 1]


def test_arguments_belong_to_the_kinds_that_have_them():
    """Launch calls of HIP carry the grid and the size of what they launch: those are the kernel's, not the call's."""
    args = Args(correlation=5, device=1, stream=2, bytes=3, grid=[2, 3, 4])
    categories = ("kernel", "hip_runtime", "python_function")
    _, table = built([event(ts=n, cat=cat, args=args) for n, cat in enumerate(categories)])
    assert table.kind.tolist() == [Kind.KERNEL, Kind.CALL, Kind.PYTHON]
    assert table.correlation.tolist() == [5, 5, 0]
    assert (table.device.tolist(), table.stream.tolist()) == ([1, 0, 0], [2, 0, 0])
    assert (table.bytes.tolist(), table.blocks.tolist()) == ([3, 0, 0], [24, 0, 0])


@pytest.mark.parametrize(
    ("grid", "blocks"),
    [
        (None, 0), ([], 0), ([0, 0, 0], 0), ([2], 2), ([2, -3, 4], 0), ([2.0, 3.0, 1.0], 6), ("[2, 3, 4]", 0),
        ([2**40, 2**40, 2**40], 2**62 - 1), ([1e300, 1, 1], 0), ([float("nan"), 1, 1], 0),
    ],
)  # fmt: skip
def test_blocks_are_the_product_of_the_grid(grid, blocks):
    _, table = built([event(cat="kernel", args=Args(grid=grid))])
    assert table.blocks.tolist() == [blocks]


def test_what_cannot_be_used_is_counted():
    week = 7 * 24 * 3600 * 1e6
    rows = [event(ts=None), event(ts=float("nan")), event(ts="soon"), event(ts=1e16), event(dur=None)]
    rows += [event(dur=-1.0), event(dur=week), event(dur=week * 1.01), Event(ph="")]
    builder, table = built(rows)
    assert dict(builder.lost) == {"time unusable": 5, "negative duration": 1, "duration overflow": 1, "no phase": 1}
    assert table.duration.tolist() == [int(week) * 1000, 0]


def test_events_that_take_no_time_of_their_own_are_left_out():
    builder, table = built([Event(ph=phase, name="x", ts=1.0) for phase in "isfCBEMN"])
    assert (len(table), dict(builder.lost)) == (0, {})


def test_hundreds_of_thousands_of_threads_are_named_in_time(tmp_path):
    """A launcher names each of its threads separately; the metadata is after the only event."""
    named = ",".join(
        f'{{"ph":"M","name":"thread_name","pid":1,"tid":{tid},"args":{{"name":"t{tid}"}}}}' for tid in range(300_000)
    )
    path = tmp_path / "trace.json"
    path.write_text(
        f'{{"traceEvents":[{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":7,"ts":1,"dur":1}},{named}]}}'
    )
    began = time.process_time()
    trace = load(str(path))
    assert time.process_time() - began < 20
    assert [(thread.thread, thread.name) for thread in trace.threads] == [("7", "t7")]
    assert not trace.lost


def test_names_of_threads_beyond_the_bound_are_counted(monkeypatch):
    monkeypatch.setattr(events, "MAX_THREAD_NAMES", 2)
    builder, _ = built([Event(ph="M", name="thread_name", pid=1, tid=tid, args=Args(name="x")) for tid in range(5)])
    assert dict(builder.lost) == {"thread names": 3}
