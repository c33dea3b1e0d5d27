"""The native scanner returns what the pure reader returns: for every recording at hand, and for damaged ones.

The number of damaged files is small by default. TB_BOTTLENECK_FUZZ=1000000 checks that many.
"""

import gzip
import json
import os
import random
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.readers import all_of, differences, differing, reader, tables_of

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.native import VARIABLE, native_scan
from tb_bottleneck.sources.blocks import BOUNDS, Bounds
from tb_bottleneck.sources.kineto import KinetoReader
from tb_bottleneck.sources.scan.results import Scanned, with_decoded
from tb_bottleneck.sources.trace_event import decode_events, decode_exact_events
from tb_bottleneck.trace.events import EventsBuilder

TESTS = Path(__file__).parent.parent.parent
TINY = sorted((TESTS / "traces").glob("*.json*"))
RECORDED = sorted((TESTS.parent / "demo" / "recorded").rglob("*.pt.trace.json.gz"))
PUBLIC = sorted(
    path
    for name in ("TRACES", "PAIRS")
    for path in Path(os.environ.get(f"TB_BOTTLENECK_{name}", "/nonexistent")).glob("*.gz")
)
CORPUS = sorted((TESTS / "native" / "fuzz" / "corpus").iterdir())
USUAL = [path.read_bytes()[1:] for path in CORPUS if not path.name.startswith("odd_")]
LISTS = [path.read_bytes()[1:] for path in CORPUS]
CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "0"))
OPERATOR = {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 1,
    "args": {"Input Dims": [[2, 3]], "Sequence number": 4},
}  # fmt: skip

KERNEL = {"cat": "kernel", "args": {"grid": [123456, 7, 1], "blocks per SM": 2.5, "device": 2**31}}
MEMORY = {"ph": "i", "name": "[memory]", "args": {"Bytes": 512, "Device Type": 1, "Addr": 2**47}}
GRIDS = ([], [3], [3, 4, 5, 6], [2**31, 2**31, 5], [2.5], [-1, 2, 3], "text", None)
RATIOS = (0.3, 1, 1.185185, 3.1000000000000001, 10**17, -5, "6")
ODD = (
    *({"name": name} for name in ("a\\b", "é\ud800", "record_param_comms", "x" * 3000, 5, None)),
    {"name": "record_param_comms", "args": {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8}},
    *({"cat": category} for category in ("CPU_OP", "never seen", None, "", "Kernel")),
    *({"pid": process, "tid": process} for process in (7.0, "7", -1, None)),
    *({"ts": time} for time in ("5.5", None, -2.5, 1.0005, 1.23456789012345678, 2**43 + 0.5, 9.1e15, 10**400)),
    *({"dur": time} for time in ("3", None, -1, 7e11, 1e3, 0.0015)),
    *({"ph": phase} for phase in ("", "i", "s", None)),
    {"ph": "M", "name": "thread_name", "args": {"name": "worker"}},
    *({"args": args} for args in (None, [], {}, "text")),
    *({"args": {"Input Dims": dims}} for dims in ([[[[[[[[[[2]]]]]]]]]], "x\n", None, [])),
    *({"args": {"Sequence number": number}} for number in ("5", 2**62, 5.0, -3, None)),
    {"args": {"Input dims": [[1]], "unknown": {"a": [True, None, 1.5]}}},
    *({**KERNEL, "args": {**KERNEL["args"], "grid": grid}} for grid in GRIDS),
    *({**KERNEL, "args": {**KERNEL["args"], "blocks per SM": ratio}} for ratio in RATIOS),
    {"cat": "kernel", "args": {"dtype": "Float", "In msg nelems": 1024, "bytes": 5}},
    {"cat": "gpu_memcpy", "args": {"bytes": 4096, "stream": 7, "correlation": 3}},
    *({**MEMORY, "args": {**MEMORY["args"], "Bytes": size}} for size in (512, 0, "5", 1.5)),
    *({**MEMORY, **change} for change in ({"ts": None}, {"args": None}, {"ph": "X"})),
)

needs_scanner = pytest.mark.skipif(
    find_spec("tb_bottleneck.native.scanner") is None, reason="built without the scanner"
)


def file_of(tmp_path, events, name="trace.json"):
    path = tmp_path / name
    text = events if isinstance(events, bytes) else b'{"traceEvents": ' + json.dumps(events).encode() + b"}"
    path.write_bytes(text)
    os.utime(path, (1e9, 1e9))
    return str(path)


def scanned_rows(path, bounds=BOUNDS):
    """Returns how many events the scanner itself read, and how many it left to Python."""
    builder = EventsBuilder()
    with reader("native"):
        batches = list(KinetoReader(path, bounds=bounds, categories=builder.categories).batches())
    mine = [batch for batch in batches if isinstance(batch, Scanned)]
    left = sum(len(batch.decoded) for batch in mine)
    return sum(batch.events for batch in mine) - left, left


@needs_scanner
@pytest.mark.parametrize("path", [*TINY, *RECORDED, *PUBLIC], ids=lambda path: path.name.partition(".")[0])
def test_both_readers_return_the_same(path, tmp_path):
    data = path.read_bytes()
    copy = file_of(tmp_path, data)
    assert differences(copy) == []
    if len(data) < 3_000:
        for block in (1, 7, 50, 331):
            assert differences(copy, Bounds(block=block)) == [], block


@needs_scanner
@pytest.mark.skipif(not PUBLIC, reason="no public traces")
def test_the_scanner_reads_nearly_all_events_itself():
    for path in PUBLIC:
        mine, left = scanned_rows(str(path))
        # The events of a category that is not known are left to Python until the first groups have been read.
        assert left <= 0.2 * mine + 200, (path.name, mine, left)


@needs_scanner
def test_groups_of_blocks_with_a_damaged_event(tmp_path):
    events = [{**OPERATOR, "ts": number, "name": f"op{number % 40}"} for number in range(3_000)]
    text = json.dumps(events).replace('"ts": 1500,', '"ts": NaN,').replace('"ts": 2000,', '"ts": 2000,,')
    path = file_of(tmp_path, b'{"traceEvents": ' + text.encode() + b"}")
    for block in (300, 1000, 5000):
        assert differences(path, Bounds(block=block)) == [], block
    assert scanned_rows(path, Bounds(block=1000))[0] > 2_900


@needs_scanner
@pytest.mark.parametrize(
    "change",
    ODD,
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("absolute", [False, True])
def test_one_odd_event_among_others(tmp_path, change, absolute):
    usual = [OPERATOR, {**OPERATOR, "cat": "kernel", "args": {"device": 1}}, OPERATOR]
    if absolute:
        usual = [{**event, "ts": 1_700_000_000_000_000.125} for event in usual]
    path = file_of(tmp_path, [*usual, {**OPERATOR, **change}, *usual])
    assert differences(path) == []


@needs_scanner
def test_times_are_rounded_alike(tmp_path):
    chance = random.Random(1)
    for digits, fraction in ((6, 1), (9, 3), (9, 6), (12, 3), (4, 12), (13, 4), (16, 3), (16, 2)):
        times = [f"{chance.randrange(10**digits)}.{chance.randrange(10**fraction):0{fraction}}" for _ in range(300)]
        times += [f"{number}.{'0' * 2}05" for number in range(20)] + [f"{number}.1235" for number in range(20)]
        rows = ", ".join(
            f'{{"ph": "X", "cat": "cpu_op", "name": "a", "ts": {time}, "dur": {time[-6:]}}}' for time in times
        )
        path = file_of(tmp_path, f'{{"traceEvents": [{rows}]}}'.encode())
        assert differences(path) == [], (digits, fraction)


@needs_scanner
def test_lost_shapes_are_counted_alike(tmp_path, monkeypatch):
    monkeypatch.setattr("tb_bottleneck.trace.columns.event_args.MAX_SIGNATURE_BYTES", 500)
    shapes = [[[number % 70, number % 3]] for number in range(900)]
    events = [{**OPERATOR, "args": {"Input Dims": shape}} for shape in shapes]
    for event in events[::7]:
        event["name"] = "left to\\Python"
    path = file_of(tmp_path, events)
    for block in (2_000, 1 << 18):
        assert all_of(path, "pure", Bounds(block=block))["lost"]["shapes"] > 500
        assert differences(path, Bounds(block=block)) == []


def damaged(seed):
    """Returns a list of events with some random changes, determined by the seed."""
    chance = random.Random(seed)
    data = bytearray(chance.choice(USUAL if seed % 4 else LISTS))
    for _ in range(chance.choice([1, 1, 1, 2, 3, 8])):
        at, span = chance.randrange(len(data) + 1), chance.choice([1, 1, 2, 8, 60])
        if chance.random() < 0.7 and (digits := [place.start() for place in re.finditer(rb"[\d.]", data)]):
            data[chance.choice(digits)] = chance.choice(b"0123456789.-")
            continue
        other = chance.choice(LISTS)
        begin = chance.randrange(len(other) + 1)
        change = chance.randrange(5)
        if change == 0:
            data[at : at + span] = other[begin : begin + span]
        elif change == 1:
            data[at:at] = other[begin : begin + chance.choice([1, 4, 40])]
        elif change == 2:
            del data[at : at + span]
        elif change == 3 and at < len(data):
            data[at] = chance.choice(b'"\\{}[],:.-+eE0123456789 \n\x00\x80nt')
        elif at < len(data):
            data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


@needs_scanner
def test_what_the_scanner_accepts_is_accepted_by_msgspec_with_the_same_tables():
    """So a list that it accepts cannot be read otherwise; a list that it refuses is read by the pure reader anyway."""
    scan, accepted, seeds = native_scan(), 0, seeds_of(4000)
    for first in seeds[::200]:  # tables of many lists are compared at once
        builder, other = EventsBuilder(), EventsBuilder()
        for seed in range(first, min(first + 200, seeds.stop)):
            text, exact = damaged(seed), bool(seed & 1)
            result = scan((text,), builder.categories(), exact)
            native = None if isinstance(result, int) else with_decoded(result, exact)
            if native is not None:
                accepted += 1
                builder.add(native)
                other.add(decode_exact_events(text) if exact else decode_events(text))
        assert differing(tables_of(other), tables_of(builder)) == [], f"seeds from {first}"
    assert accepted > 0.1 * len(seeds)
    print(f"{accepted} of {len(seeds)} lists were accepted")


def seeds_of(cases):
    """Returns the seeds of damaged lists: always the same ones unless a number of cases is asked for."""
    first = random.SystemRandom().randrange(2**40) if CASES else 0
    return range(first, first + (CASES or cases))


@needs_scanner
def test_damaged_lists_are_read_alike(tmp_path):
    for seed in seeds_of(400):
        end = b"" if seed % 5 == 0 else b', {"ph": "X", "ts": 1}]}'
        path = file_of(tmp_path, b'{"traceEvents": ' + damaged(seed).rstrip(b"] \n") + end)
        assert differences(path, Bounds(block=(40, 200, 1000, 1 << 18)[seed % 4])) == [], f"seed {seed}"


@needs_scanner
def test_the_variable_selects_the_reader(tmp_path, monkeypatch):
    path = file_of(tmp_path, [OPERATOR] * 5)
    assert scanned_rows(path)[0] == 4  # the last event is read with the end of the list
    monkeypatch.setenv(VARIABLE, "pure")
    assert native_scan() is None
    monkeypatch.setenv(VARIABLE, "other")
    with pytest.raises(Unusable, match=r"'other'\. It can be `pure` or `native`"):
        native_scan()


def test_a_missing_scanner_is_explained_only_if_it_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "tb_bottleneck.native.scanner", None)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert native_scan() is None
    monkeypatch.setenv(VARIABLE, "native")
    with pytest.raises(Unusable, match="the native scanner is not installed"):
        native_scan()


@needs_scanner
def test_wrong_arguments_raise():
    scan = native_scan()
    for wrong in ((), ([], (), False), (("text",), (), False), ((b"[]",), ((b"x",),), False), ((b"[]",), (5,), False)):
        with pytest.raises(TypeError):
            scan(*wrong)
    assert scan((b"[]",), (), False) == 0
    assert scan((), (), True)[0] == 0


@needs_scanner
def test_an_empty_file_has_no_rows(tmp_path):
    assert len(all_of(file_of(tmp_path, gzip.compress(b'{"traceEvents": []}')), "native")["Events.start"]) == 0
