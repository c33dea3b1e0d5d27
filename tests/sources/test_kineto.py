import contextlib
import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from tb_bottleneck.base.errors import NotATrace, StillGrowing, TooLarge
from tb_bottleneck.sources.blocks import Bounds
from tb_bottleneck.sources.kineto import KinetoReader

TRACES = Path(__file__).parent.parent / "traces"
MEGABYTE = 1 << 20
SMALL = Bounds(block=1 << 16, event=MEGABYTE, header=MEGABYTE)


class ProgressCalls(list):
    """A progress listener that records its calls."""

    def __call__(self, read, total):
        self.append((read, total))


def event(name, ts=1, **more):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 1, **more}


def file_of(tmp_path, data, name="trace.json"):
    """Writes a file with an old time, so that an early end means truncated and not growing."""
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    os.utime(path, (1e9, 1e9))
    return str(path)


def trace_of(*events, tail="]}"):
    return '{"schemaVersion": 1, "traceEvents": [' + ", ".join(map(json.dumps, events)) + tail


def names(reader):
    return [each.name for batch in reader.batches() for each in batch if each.ph == "X"]


def said(each):
    return each.ph, each.name, each.pid, each.tid, str(each.ts), str(each.dur)


def all_of(path, bounds):
    """Returns everything that the reader reports about a file, including an error."""
    reader = KinetoReader(path, bounds=bounds)
    try:
        events = [said(each) for batch in reader.batches() for each in batch]
    except NotATrace as error:
        return str(error)
    return events, dict(reader.lost), reader.truncated, reader.header


# --- blocks ---


def test_events_are_the_same_wherever_the_blocks_are_cut(tmp_path):
    """Each byte of the file becomes the last one of a block, once."""
    data = (TRACES / "sound.json").read_bytes()
    path = file_of(tmp_path, data)
    whole = all_of(path, Bounds())
    assert [each[1] for each in whole[0]] == ["first", "odd", "last"]
    for block in range(1, len(data) + 1):
        assert all_of(path, Bounds(block=block)) == whole, block


@pytest.mark.parametrize("name", sorted(path.name for path in TRACES.glob("*.json*")))
def test_oddities_are_the_same_wherever_the_blocks_are_cut(tmp_path, name):
    path = file_of(tmp_path, (TRACES / name).read_bytes(), name)
    whole = all_of(path, Bounds())
    for block in (1, 2, 3, 7, 50, 331):
        assert all_of(path, Bounds(block=block)) == whole, block


def test_progress_is_given_in_bytes_of_the_file(tmp_path):
    data = (TRACES / "sound.json").read_bytes()
    for content in (data, gzip.compress(data)):
        result = ProgressCalls()
        assert len(names(KinetoReader(file_of(tmp_path, content), result, Bounds(block=100)))) == 3
        assert result == sorted(result)
        assert 0 < result[0][0] <= 100
        assert {total for _, total in result} == {len(content)}
        assert result[-1] == (len(content), len(content))


# --- large things ---


def test_a_name_of_ten_megabytes_is_read(tmp_path):
    reader = KinetoReader(file_of(tmp_path, trace_of(event("a"), event("x" * 10_000_000), event("b"))))
    assert [len(str(name)) for name in names(reader)] == [1, 10_000_000, 1]
    assert (dict(reader.lost), reader.truncated) == ({}, "")


@pytest.mark.parametrize("zipped", [False, True])
def test_an_event_beyond_the_bound_is_skipped_and_counted(tmp_path, zipped):
    """Only this event is lost, the rest of the file is read, and memory is bounded."""
    text = trace_of(event("a"), event("x" * 9 * MEGABYTE), event("b"), event("c"), tail='], "traceName": "t"}')
    path = file_of(tmp_path, gzip.compress(text.encode()) if zipped else text)
    reader = KinetoReader(path, bounds=SMALL)
    tracemalloc.start()
    try:
        assert names(reader) == ["a", "b", "c"]
        assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
    finally:
        tracemalloc.stop()
    assert (dict(reader.lost), reader.truncated) == ({"too large": 1}, "")
    assert reader.header == {"schemaVersion": 1, "traceEvents": [], "traceName": "t"}


@pytest.mark.parametrize("tail", ["], ", '], "x": N/A, '])
def test_a_long_fraction_beside_the_events_is_a_number(tmp_path, tail):
    """Times of events keep all their digits as text; facts of the program have no absolute times."""
    reader = KinetoReader(file_of(tmp_path, trace_of(event("a"), tail=tail + '"batches": 28.73971162763715}')))
    names(reader)
    assert reader.header["batches"] == 28.73971162763715


def test_a_last_event_beyond_the_bound(tmp_path):
    huge = event("x" * 2 * MEGABYTE)
    reader = KinetoReader(file_of(tmp_path, trace_of(event("a"), huge)), bounds=SMALL)
    assert names(reader) == ["a"]
    assert (dict(reader.lost), reader.truncated) == ({"too large": 1}, "")
    reader = KinetoReader(file_of(tmp_path, trace_of(event("a"), huge, tail="")), bounds=SMALL)
    assert names(reader) == ["a"]
    assert (dict(reader.lost), reader.truncated) == ({"too large": 1}, "the list of events has no end")


def test_a_tail_beyond_the_bound_is_no_event(tmp_path):
    tail = '], "stackFrames": {"1": "' + "x" * 3 * MEGABYTE + '"}}'
    reader = KinetoReader(file_of(tmp_path, trace_of(event("a"), event("b"), tail=tail)), bounds=SMALL)
    assert names(reader) == ["a", "b"]
    assert (dict(reader.lost), reader.truncated) == ({}, "")
    assert reader.header == {"schemaVersion": 1, "traceEvents": []}  # the part before the events is enough


def test_many_metadata_events(tmp_path):
    row = '{"ph": "M", "name": "thread_name", "pid": 1, "tid": %d, "ts": 0, "args": {"name": "t"}}, '
    rows = "".join([row % number for number in range(300_000)])
    reader = KinetoReader(file_of(tmp_path, '{"traceEvents": [' + rows + json.dumps(event("a")) + "]}"))
    assert sum(len(batch) for batch in reader.batches()) == 300_001
    assert not reader.lost


def test_deep_nesting_costs_its_own_event(tmp_path):
    for nested in ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
        text = trace_of(event("a"), event("deep", args={"x": 0}), event("b")).replace('"x": 0', '"x": ' + nested)
        reader = KinetoReader(file_of(tmp_path, text))
        assert names(reader) == ["a", "b"]
        assert dict(reader.lost) == {"malformed": 1}


def test_a_deeply_nested_header_is_ignored(tmp_path):
    text = trace_of(event("a")).replace('{"schemaVersion": 1', '{"x": ' + "[" * 100_000 + "]" * 100_000)
    reader = KinetoReader(file_of(tmp_path, text))
    assert (names(reader), reader.header) == (["a"], {})


def test_zeros_are_refused_at_once(tmp_path):
    for data in (gzip.compress(bytes(100_000_000), 1), b" " * 1_000_000 + b"[" * 100):
        result = ProgressCalls()
        reader = KinetoReader(file_of(tmp_path, data), result)
        tracemalloc.start()
        try:
            with pytest.raises(NotATrace):
                list(reader.batches())
            assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
        finally:
            tracemalloc.stop()
        assert len(result) == 1


def test_a_head_beyond_the_bound_is_refused(tmp_path):
    text = trace_of(event("a")).replace("1", '"' + "x" * 3 * MEGABYTE + '"', 1)
    with pytest.raises(NotATrace, match='No list "traceEvents" was found'):
        list(KinetoReader(file_of(tmp_path, text), bounds=SMALL).batches())


def test_too_many_events_are_refused(tmp_path):
    path = file_of(tmp_path, trace_of(*(event(str(n)) for n in range(100))))
    with pytest.raises(TooLarge, match=r"more than 9\.9e-05 million events, .* Record fewer steps"):
        list(KinetoReader(path, bounds=Bounds(events=99)).batches())
    assert len(names(KinetoReader(path, bounds=Bounds(events=100)))) == 100


def test_large_events_beside_an_oddity(tmp_path):
    """The lenient reader uses a window that grows until it contains the whole event."""
    events = [event("x" * size, args={"Call stack": "y" * size}) for size in (10, 3_000, 5_000, 2_000_000)]
    events += [event("w" * size, args={"x": [True] * 200_000}) for size in range(1, 7)]
    text = trace_of(event("odd"), *events).replace('"dur": 1', '"dur": NaN', 1)
    reader = KinetoReader(file_of(tmp_path, text), bounds=Bounds(block=1 << 24))
    assert [len(name) for name in names(reader)] == [3, 10, 3_000, 5_000, 2_000_000, 1, 2, 3, 4, 5, 6]
    assert (dict(reader.lost), reader.truncated) == ({}, "")


def test_the_lenient_decoder_never_sees_a_long_text_of_short_events(tmp_path, monkeypatch):
    """Its error messages count the lines before the error: with megabytes before it, each error took milliseconds."""
    seen = []

    class Spy(json.JSONDecoder):
        def raw_decode(self, text, at=0):
            seen.append(len(text))
            return super().raw_decode(text, at)

    monkeypatch.setattr("tb_bottleneck.sources.lenient.DECODER", Spy(strict=False))
    reader = KinetoReader(file_of(tmp_path, trace_of(*[event("x" * 50)] * 2_000).replace('"dur": 1', '"dur": NaN')))
    assert len(names(reader)) == 2_000
    assert max(seen) <= 4096


def test_many_broken_events(tmp_path):
    good, bad = json.dumps(event("good")), json.dumps(event("bad", args={"x": 0})).replace('"x": 0', '"x": N/A, "y" 1')
    text = '{"traceEvents": [' + ",\n".join([bad] * 5_000 + [good]) + "]}"
    reader = KinetoReader(file_of(tmp_path, text))
    assert names(reader) == ["good"]
    assert dict(reader.lost) == {"malformed": 5_000}


def test_long_white_space_takes_linear_time(tmp_path):
    space = " \n" * 500_000
    text = trace_of(event("a"), tail="") + space + "," + space + json.dumps(event("b")) + space + "]}"
    reader = KinetoReader(file_of(tmp_path, text.replace('"dur": 1', '"dur": nan')))
    assert names(reader) == ["a", "b"]


# --- growing ---


def test_a_list_without_end_in_a_fresh_file_is_still_growing(tmp_path):
    whole = trace_of(event("a"))
    for text in (whole[:-2], whole[:20], "", gzip.compress(whole.encode())[:-9]):
        path = file_of(tmp_path, text)
        os.utime(path)
        with pytest.raises(StillGrowing, match="the rest may follow"):
            list(KinetoReader(path).batches())


def test_a_fresh_file_that_is_whole_or_no_trace_is_not(tmp_path):
    path = file_of(tmp_path, trace_of(event("a")))
    os.utime(path)
    assert names(KinetoReader(path)) == ["a"]
    for text in ("no trace", '{"a": [1, 2]}\n'):
        path = file_of(tmp_path, text)
        os.utime(path)
        with pytest.raises(NotATrace):
            list(KinetoReader(path).batches())


@pytest.mark.parametrize("text", ["{}", '{"traceEvents": [{"ph": "X"'])
def test_a_fresh_file_that_is_whole_and_broken_is_broken(tmp_path, text):
    path = file_of(tmp_path, gzip.compress(text.encode()))
    os.utime(path)
    reader = KinetoReader(path)
    with contextlib.suppress(NotATrace):
        list(reader.batches())
        assert reader.truncated == "the list of events has no end"


def test_a_file_that_grows_while_it_is_read_is_still_growing(tmp_path):
    path = file_of(tmp_path, trace_of(*(event(str(n)) for n in range(50)), tail=""))
    batches = KinetoReader(path, bounds=Bounds(block=1000)).batches()
    next(batches)
    with open(path, "a") as file:
        file.write(", " + json.dumps(event("more")))
    os.utime(path, (1e9, 1e9))
    with pytest.raises(StillGrowing, match="grew while it was read"):
        list(batches)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("report.nsys-rep", b"\x00NSYS", "a report of Nsight Systems"),
        ("kernels.ncu-rep", b"NVR\x00", "a report of Nsight Compute"),
        ("host.xplane.pb", b"\x0a\x10\x08\x01\x12\x09/host:CPU", "a trace of XLA's profiler"),
        ("export", b"SQLite format 3\x00" + bytes(90), "a database, as Nsight Systems exports it"),
        ("notes.txt", b"none of these", 'No list "traceEvents"'),
        ("a.json.gz", bytes(range(128, 256)), "binary data in place of JSON, and is not compressed with gzip"),
        ("a.json", b"\x00\x01\x02", "binary data in place of JSON. It is damaged"),
    ],
)
def test_files_of_other_profilers_are_named(name, content, said, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    os.utime(path, (1e9, 1e9))
    with pytest.raises(NotATrace) as caught:
        list(KinetoReader(str(path)).batches())
    assert said in str(caught.value)
