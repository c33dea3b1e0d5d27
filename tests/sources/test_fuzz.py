"""Random traces compared with an independent slow reader, and random damage to the files of tests/traces.

The number of cases is small by default. TB_BOTTLENECK_FUZZ=10000 runs that many cases of each test.
"""

import contextlib
import gzip
import json
import os
import random
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.trace import load

TRACES = Path(__file__).parent.parent / "traces"
CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "0"))
COLUMNS = ("start", "duration", "correlation", "device", "stream", "bytes", "blocks")
KIND = {
    "cpu_op": 1, "Operator": 1, "user_annotation": 2, "python_function": 3, "cuda_runtime": 4, "Runtime": 4,
    "hip_runtime": 4, "kernel": 5, "Kernel": 5, "gpu_memcpy": 6, "gpu_memset": 7, "overhead": 8, "ac2g": 0, "Trace": 0,
}  # fmt: skip
LINKED, ON_DEVICE = {4, 5, 6, 7}, {5, 6, 7}


def runs(cases):
    return settings(
        max_examples=CASES or cases,
        deadline=None,
        derandomize=not CASES,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


# --- structure: the same columns as a slow reader, in every dialect ---

numbers = st.integers(0, 2**31)
microseconds = st.one_of(st.integers(0, 10**9), st.integers(0, 10**12).map(lambda ns: Decimal(ns) / 1000))
# A recording is within a week.
absolute = st.integers(17 * 10**17, 17 * 10**17 + 5 * 10**14).map(lambda ns: Decimal(ns) / 1000)
tricky = st.sampled_from(['a"}, {"ph": 1', "], ", "\\", '{"name":', "é\u2028\U0001f600", "}]}"])
texts = st.one_of(st.text(max_size=12), tricky)
deep = st.recursive(
    st.none() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "correlation": numbers,
        "External id": numbers,
        "device": st.integers(0, 7),
        "stream": st.integers(0, 200),
        "bytes": st.integers(0, 2**40),
        "grid": st.lists(st.integers(0, 2**16), min_size=3, max_size=3),
        "blocks per SM": st.floats(0, 100),
        "Input Dims": deep,
        "Concrete Inputs": st.lists(texts, max_size=3),
    },
)


@st.composite
def events(draw, times):
    event = {
        "ph": draw(st.sampled_from("XXXXXisfM")),
        "cat": draw(st.sampled_from(sorted(KIND))),
        "name": draw(texts),
        "pid": draw(st.one_of(st.integers(-1, 9), st.sampled_from(["Spans", "3", ""]))),
        "tid": draw(st.one_of(st.integers(-(2**33), 2**33), st.sampled_from(["stream 7", "7"]))),
        "ts": draw(times),
        "dur": draw(microseconds),
    }
    if draw(st.booleans()):
        event["args"] = draw(arguments)
    keys = draw(st.permutations(sorted(event)))
    return {key: event[key] for key in keys}


class Dialect:
    """The form of a document: white space, escapes, line ends, numbers as text, position of the events."""

    def __init__(self, draw):
        self.indent = draw(st.sampled_from([None, 0, 1, 4]))
        self.ascii = draw(st.booleans())
        self.newline = draw(st.sampled_from(["\n", "\r\n"]))
        self.as_text = draw(st.sets(st.sampled_from(["ts", "dur", "pid", "correlation", "stream", "bytes"])))
        self.place = draw(st.sampled_from(["only", "first", "last", "middle", "list"]))
        self.zipped = draw(st.booleans())
        self.mark = draw(st.booleans())

    def written(self, events):
        events = [self.event(event) for event in events]
        head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A"}]}
        tail = {"traceName": "x", "other": [{"name": "b"}, {"name": "c"}]}
        parts = {
            "only": {"traceEvents": events},
            "first": {"traceEvents": events, **head, **tail},
            "last": {**head, **tail, "traceEvents": events},
            "middle": {**head, "traceEvents": events, **tail},
            "list": events,
        }
        separators = (",", ":") if self.indent is None and self.ascii else None
        style = {"indent": self.indent, "ensure_ascii": self.ascii, "separators": separators}
        text = json.dumps(parts[self.place], **style, cls=Exact)
        data = Exact.unquoted(text).replace("\n", self.newline).encode("utf-8", "surrogatepass")
        data = b"\xef\xbb\xbf" + data if self.mark else data
        return gzip.compress(data, 1) if self.zipped else data

    def event(self, event):
        result = {key: self.value(key, value) for key, value in event.items() if key != "args"}
        if "args" in event:
            result["args"] = {key: self.value(key, value) for key, value in event["args"].items()}
        return {key: result[key] for key in event}

    def value(self, key, value):
        return str(value) if key in self.as_text else value


class Exact(json.JSONEncoder):
    """Writes decimals with all their digits."""

    def default(self, value):
        return f"@decimal {value:f}@"

    @staticmethod
    def unquoted(text):
        return re.sub(r'"@decimal ([-\d.]+)@"', r"\1", text)


def slow_rows(events):
    """Reads the trace one event at a time, by this test's own implementation of the format."""
    rows = []
    for event in events:
        if event["ph"] != "X":
            continue
        args, kind = event.get("args", {}), KIND[event["cat"]]
        start, duration = int(Decimal(event["ts"]) * 1000), int(Decimal(event["dur"]) * 1000)
        grid = args.get("grid", [0, 0, 0])
        linked, on_device = kind in LINKED, kind in ON_DEVICE
        rows.append((
            start, duration, args.get("correlation", 0) * linked,
            args.get("device", 0) * on_device, args.get("stream", 0) * on_device, args.get("bytes", 0) * on_device,
            grid[0] * grid[1] * grid[2] * on_device,
            kind, event["name"].encode("utf-8", "replace").decode(), (str(event["pid"]), str(event["tid"])),
        ))  # fmt: skip
    return sorted(rows, key=lambda row: (row[0], -row[1]))  # stable: file order last


def rows_of(trace):
    table = trace.events
    threads = [(thread.process, thread.thread) for thread in trace.threads]
    columns = [getattr(table, name).tolist() for name in (*COLUMNS, "kind")]
    return list(zip(*columns, [trace.names[n] for n in table.name], [threads[n] for n in table.thread], strict=True))


@runs(60)
@given(st.data())
def test_columns_are_those_of_a_slow_reader(tmp_path, data):
    drawn = data.draw(st.lists(events(data.draw(st.sampled_from([microseconds, absolute]))), max_size=8))
    # The reader leaves out work that a device repeats, or that has no time.
    made = list({(Decimal(event["ts"]), event["name"]): event for event in drawn if Decimal(event["dur"])}.values())
    path = tmp_path / "trace.json"
    path.write_bytes(Dialect(data.draw).written(made))
    trace = load(str(path))
    assert rows_of(trace) == slow_rows(made)
    assert (dict(trace.lost), trace.truncated) == ({}, "")


# --- bytes: only our own errors, and always a report ---

CORPUS = [path.read_bytes() for path in sorted(TRACES.glob("*.json*"))]
PLAIN = [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in CORPUS if data[:2] != b"\x1f\x8b"]
WORDS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"},", b"]}", b'{"ph":"X"', b'"ph"', b'"ts":',
    b'"traceEvents": [', b"null", b"NaN", b"-Infinity", b"N/A", b"1e999", b"-1", b"0", b"9" * 400, b"9" * 5000,
    b"1e-400", b"0.5", b"true", b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\n", b"\r\n", b" " * 300,
    b"\x1f\x8b", b'"args":', b'"dur"', b'"name": "thread_name"', b"[" * 1200, b'{"a":' * 1200, b'"kernel"',
    b'"Kernel"', b'"cuda_runtime"', b'"ProfilerStep#1"', b'"user_annotation"', b'"grid": [', b'"deviceProperties"',
    b'"tb_bottleneck": {"context": {}}', b'"distributedInfo": {"rank": 1}', b"1e308", b"9223372036854775807",
]  # fmt: skip


def damaged(seed):
    """Returns a file of tests/traces with a few random changes, determined by the seed."""
    chance = random.Random(seed)
    data = bytearray(chance.choice(PLAIN if chance.random() < 0.8 else CORPUS))
    for _ in range(chance.choice([1, 1, 2, 3, 5, 12])):
        at = chance.randrange(len(data) + 1)
        span = chance.choice([1, 1, 4, 20, 200])
        change = chance.randrange(6)
        if change == 0:
            data[at:at] = chance.choice(WORDS)
        elif change == 1:
            data[at : at + span] = chance.choice(WORDS)
        elif change == 2:
            del data[at : at + span]
        elif change == 3 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif change == 4:
            other = chance.choice(PLAIN)
            begin = chance.randrange(len(other) + 1)
            data[at:at] = other[begin : begin + span * 5]
        else:
            data[at:at] = data[at : at + span * 3] * chance.choice([1, 2, 10])
    return gzip.compress(bytes(data), 1) if chance.random() < 0.1 else bytes(data)


def check(path, data, age):
    path.write_bytes(data)
    os.utime(path, (age, age))
    with contextlib.suppress(BottleneckError):
        load(str(path))
    report = diagnose(str(path))
    assert report.health.status in ("ok", "degraded", "incomplete", "unreadable")
    assert [reason.code for reason in report.health.reasons] != ["broken"], report.health.reasons[0].detail


def test_damage_never_raises_anything_else(tmp_path):
    first = random.SystemRandom().randrange(2**40) if CASES else 0
    for seed in range(first, first + (CASES or 500)):
        try:
            check(tmp_path / "trace.json", damaged(seed), 1e9)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}")


@runs(60)
@given(st.binary(max_size=300))
def test_noise_never_raises_anything_else(tmp_path, data):
    begun = b'{"traceEvents": ['
    for prefix in (b"", b"\x1f\x8b", gzip.compress(data)[:-8], begun, begun + b'{"ph": "X", "name": "'):
        check(tmp_path / "trace.json", prefix + data, 1e9)
