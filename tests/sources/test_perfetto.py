"""Native traces of Perfetto: reports are those of the same events as JSON, and damage costs one report at most.

`perfetto/metric_reads.pftrace` was written by torch 2.15's own encoder (torch.profiler._cuspy) from the events of a
simulated recording of the demo.
The number of damaged files is small by default. TB_BOTTLENECK_FUZZ=1000000 checks that many.
"""

import gzip
import json
import os
import random
from pathlib import Path

import fsspec
import pytest
from helpers.draw import dependency, drawn
from helpers.perfetto_writer import Writer, convert, message, number, perfetto_of
from helpers.readers import all_of
from helpers.reports import report_of

from demo.pairs import RECORDED
from tb_bottleneck.base.errors import BottleneckError, NotATrace, TooLarge
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.sources import perfetto
from tb_bottleneck.sources.kineto import KinetoReader
from tb_bottleneck.sources.logdir import scan
from tb_bottleneck.sources.perfetto import is_perfetto
from tb_bottleneck.trace.trace import load

pytest.importorskip("tb_bottleneck.native.scanner", reason="built without the scanner")
OF_TORCH = Path(__file__).parent / "perfetto" / "metric_reads.pftrace"
SIMULATED = sorted(RECORDED.glob("simulated/*/slow/simulated*.gz"))
DEMO = sorted(RECORDED.glob("*/slow/*.pt.trace.json.gz"))[::5] + SIMULATED
PUBLIC = sorted(
    path
    for path in Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent")).glob("*.json.gz")
    if path.name.startswith(("mi300_vit", "a4000"))
)
CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "300"))
COLUMNS = ("start", "duration", "kind", "correlation", "device", "stream", "bytes", "blocks", "occupancy", "sequence")
STEPS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    op      ....##.#......##.#......##.#..
    gpu     ....aabbcc....aabbcc....aabbcc
"""


def written(tmp_path, data, name="trace.pftrace"):
    path = tmp_path / name
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    return path


def events_of(path):
    """Returns the events that are left to Python if no category is known: all but allocations."""
    reader = KinetoReader(str(path), categories=tuple)
    return [event for batch in reader.batches() for event in getattr(batch, "decoded", batch)], reader


@pytest.mark.parametrize("name", ["trace.pftrace", "trace.pftrace.gz"])
def test_an_object_store_has_native_traces_too(name, tmp_path):
    packed = OF_TORCH.read_bytes()
    local = written(tmp_path, packed if name.endswith(".gz") else gzip.decompress(packed), name)
    store = fsspec.filesystem("memory")
    store.pipe(f"/perfetto/x/{name}", local.read_bytes())
    try:
        (recording,) = scan("memory://perfetto").recordings
        assert (recording.run, recording.source, recording.kind) == ("x", name, "trace")
        assert diagnose(recording.path) == diagnose(str(local))
    finally:
        store.rm("/perfetto", recursive=True)


def slices_of(path):
    events = [event for event in events_of(path)[0] if event.ph == "X"]
    return sorted((event.ts, event.dur, event.name) for event in events)


def without_source(report):
    report.ClearField("source")
    return report


@pytest.mark.parametrize("path", [*DEMO, *PUBLIC], ids=lambda path: f"{path.parent.parent.name}/{path.name[:12]}")
def test_the_report_is_that_of_the_json(path, tmp_path):
    convert(path, tmp_path / "trace.pftrace")
    assert without_source(diagnose(str(tmp_path / "trace.pftrace"))) == without_source(report_of(path))


@pytest.mark.parametrize("path", SIMULATED[:4], ids=lambda path: path.parent.parent.name)
@pytest.mark.parametrize("batch", [7, perfetto.BATCH_EVENTS])
def test_the_tables_are_those_of_the_json(path, batch, tmp_path, monkeypatch):
    """Short batches are scanned in threads."""
    monkeypatch.setattr(perfetto, "BATCH_EVENTS", batch)
    convert(path, tmp_path / "trace.pftrace")
    found, wanted = (all_of(str(each), "native") for each in (tmp_path / "trace.pftrace", path))
    same = [name for name in wanted if name.startswith("Events.") and name.split(".")[1] in COLUMNS]
    assert len(same) == len(COLUMNS)
    for name in same:
        assert (found[name] == wanted[name]).all(), name
    assert found["names"] == wanted["names"]
    assert found["signatures"] == wanted["signatures"]


@pytest.mark.parametrize("path", SIMULATED[:4], ids=lambda path: path.parent.parent.name)
def test_slices_in_the_order_of_time_have_their_ends(path, tmp_path):
    """Programs that write while they run close a slice before the one around it."""
    convert(path, tmp_path / "trace.pftrace", in_columns=False)
    assert slices_of(tmp_path / "trace.pftrace") == slices_of(path)


def test_a_file_of_torch_has_the_report_of_its_json(tmp_path):
    """But for what torch does not write: device properties, and how kernels fill multiprocessors."""
    (recorded,) = RECORDED.glob("simulated/metric_reads/slow/*.gz")
    trace = json.loads(gzip.decompress(recorded.read_bytes()))
    for event in trace["traceEvents"]:
        event.get("args", {}).pop("warps per SM", None)
    events = {"baseTimeNanoseconds": 1_760_000_000_000_000_000, "traceEvents": trace["traceEvents"]}
    as_json = without_source(diagnose(str(written(tmp_path, json.dumps(events).encode(), "trace.json"))))
    assert as_json.verdict.regime == "sync"
    assert without_source(diagnose(str(OF_TORCH))) == as_json


def test_dependencies_between_device_work_are_those_of_the_json(tmp_path):
    trace = drawn(STEPS, 1000)
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    for event in kernels[::2]:
        event["tid"] = event["args"]["stream"] = 30
    for at in range(len(kernels) - 1):
        trace["traceEvents"] += dependency(at, kernels[at], kernels[at + 1])
    native = written(tmp_path, perfetto_of(trace))
    found, wanted = (load(str(each)) for each in (native, written(tmp_path, json.dumps(trace).encode(), "t.json")))
    assert len(found.dependencies[0]) == len(kernels) - 1
    assert [rows.tolist() for rows in found.dependencies] == [rows.tolist() for rows in wanted.dependencies]
    assert found.dependencies[1].tolist() == list(range(1, len(kernels)))


def test_names_counters_and_instants_are_those_of_the_json(tmp_path):
    writer = Writer(10**18)
    writer.track(7, None, 'a "process"\n')
    writer.track(7, 8, "main")
    instant = {"pid": 7, "tid": 8, "cat": "cpu_instant_event", "name": "[memory]", "args": {"Bytes": 512}}
    writer.begin(instant, 5_001, kind=3)
    names = ["SM Active (%)", "GPU Clock"]
    writer.counters([{"name": "GPU Clock", "value": 345.0}, {"name": names[0], "value": 7.5}], 6_000, 1, names)
    slice_ = {"pid": 7, "tid": 8, "cat": "cpu_op", "name": "aten::mm", "args": {"Input Dims": [[2, 3], []], "a": True}}
    writer.begin(slice_, 7_000)
    writer.end(slice_, 8_500)
    writer.begin(slice_, 9_000)  # never ends
    path = written(tmp_path, bytes(writer.out))
    events, reader = events_of(path)
    assert [(event.ph, event.name, event.ts, event.dur) for event in events] == [
        ("M", "process_name", 0.0, 0.0),
        ("M", "thread_name", 0.0, 0.0),
        ("C", "GPU Clock", 6.0, 0.0),
        ("C", "SM Active (%)", 6.0, 0.0),
        ("X", "aten::mm", 7.0, 1.5),
    ]
    assert events[0].args.name == 'a "process"\n'
    assert events[2].pid == "GPU 1 Counters"
    assert bytes(events[4].args.dims) == b"[[2,3],[]]"
    assert all_of(str(path), "native")["MemoryEvents.size"].tolist() == [512]
    assert reader.header["baseTimeNanoseconds"] == 10**18
    assert not reader.truncated


def test_a_trace_that_ends_early_is_read_up_to_there(tmp_path):
    data = perfetto_of(drawn(STEPS, 1000))
    events, reader = events_of(written(tmp_path, data[:-3]))
    assert len(events) > 10
    assert reader.truncated


def test_it_is_found_in_a_logdir(tmp_path):
    trace = perfetto_of(drawn(STEPS, 1000))
    for name in ("a.pftrace", "b.perfetto-trace", "c.pftrace.gz"):
        written(tmp_path, gzip.compress(trace) if name.endswith("gz") else trace, name)
    written(tmp_path, b"no trace", "d.pftrace")
    assert [each.source for each in scan(tmp_path).recordings] == ["a.pftrace", "b.perfetto-trace", "c.pftrace.gz"]


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\n",
        b'\n{"traceEvents": []}',
        b'\n\n{"traceEvents": [{"ph": "X"}]}',
        message(1, number(1, 5) + message(2, "/host:CPU") + message(3, message(2, "thread"))),  # an xplane
        b"\x0a\x05hello",
        bytes(range(10, 200)),
    ],
)
def test_other_files_are_no_traces_of_perfetto(head):
    assert not is_perfetto(head)


def test_a_system_trace_is_named_as_one(tmp_path):
    packets = b"".join(message(1, number(8, at) + message(1, b"\x08\x01")) for at in range(9))
    with pytest.raises(NotATrace, match="system trace"):
        events_of(written(tmp_path, packets))


def test_without_the_compiled_part_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tb_bottleneck.native.scanner", None)
    with pytest.raises(NotATrace, match=r"Install the package from a wheel"):
        events_of(written(tmp_path, perfetto_of(drawn(STEPS, 1000))))


def test_damaged_files_cost_only_their_own_report(tmp_path):
    chance = random.Random(1)
    sound = [perfetto_of(drawn(STEPS, 1000), columns) for columns in (True, False)]
    sound.append(gzip.decompress(OF_TORCH.read_bytes()))
    for case in range(CASES):
        data = bytearray(chance.choice(sound))
        for _ in range(chance.randrange(1, 9)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] ^= 1 << chance.randrange(8)
                case 1:
                    data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
                case 2:
                    del data[at : at + chance.choice((1, 7, 60))]
                case _:
                    other = chance.choice(sound)
                    begin = chance.randrange(len(other))
                    data[at:at] = other[begin : begin + chance.choice((1, 9, 80))]
        path = written(tmp_path, bytes(data))
        try:
            events_of(path) if case % 10 else diagnose(str(path))
        except BottleneckError:
            continue


def test_a_long_name_in_many_places_takes_no_more_memory_than_allowed(tmp_path, monkeypatch):
    writer = Writer(10**18)
    writer.track(7, 8, "main")
    writer.packet(message(12, message(29, number(1, 1) + message(2, "x" * (1 << 20)))))
    hundred = message(12, number(17, 1)) * 100
    writer.packet(message(11, number(9, 1) + number(11, 1) + message(4, message(10, "Input Dims") + hundred)), 0)
    writer.packet(message(11, number(9, 2) + number(11, 1)), 5)
    with pytest.raises(BottleneckError, match="memory"):
        events_of(written(tmp_path, bytes(writer.out)))
    monkeypatch.setattr(perfetto, "MAX_TEXT", 10_000)
    with pytest.raises(TooLarge, match="of text"):
        events_of(written(tmp_path, perfetto_of(drawn(STEPS, 1000)) * 40))


def test_many_tracks_and_nested_values_take_no_quadratic_time(tmp_path):
    writer = Writer(10**18)
    deep = message(10, "deep")
    for _ in range(2_000):
        deep = message(12, deep)
    for number_ in range(20_000):
        writer.tracks[1, number_] = number_ + 1
        content = (
            number(9, 1) + number(11, number_ + 1) + message(4, message(10, "deep") + deep if number_ == 5 else b"")
        )
        writer.packet(message(60, number(1, number_ + 1) + number(5, 1)))
        writer.packet(message(11, content), number_)
        writer.packet(message(11, number(9, 2) + number(11, number_ + 1)), number_ + 1)
    events, _ = events_of(written(tmp_path, bytes(writer.out)))
    assert sum(event.ph == "X" for event in events) == 20_000
