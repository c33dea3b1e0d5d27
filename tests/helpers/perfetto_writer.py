"""Writes the events of Kineto's JSON as a native trace of Perfetto, by the proto files in google/perfetto.

Independent of the reader. Events of the host become slices, in columns (all begins, then all ends, as torch writes
them) or in the order of time; those of the device become render stages, with their arguments as text.
"""

import gzip
import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

STAGES = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset", "gpu_user_annotation": "Annotation"}
RENAMED = {"device": "device id", "context": "context id", "stream": "stream id"}
SEQUENCE = 7


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def message(field: int, content: bytes | str) -> bytes:
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(data)) + data


class Names:
    """Interned strings of one kind: each is defined in the packet that uses it first."""

    def __init__(self, field: int) -> None:
        self.field, self.known, self.new = field, dict[str, int](), b""

    def iid(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.known) + 1
            self.new += message(self.field, number(1, self.known[text]) + message(2, text))
        return self.known[text]


class Writer:
    """Packets of one trace."""

    def __init__(self, base_ns: int) -> None:
        self.base_ns, self.out, self.stages = base_ns, bytearray(), 0
        self.categories, self.events, self.annotations = Names(1), Names(2), Names(3)
        self.specifications, self.kernels, self.launch_arguments = Names(24), Names(1000), Names(1001)
        self.tracks: dict[tuple[Any, Any], int] = {}
        self.numbers: dict[Any, int] = {}
        if base_ns:
            self.packet(message(6, message(1, number(1, 1) + number(2, base_ns))))

    def packet(self, content: bytes, ns: int | None = None) -> None:
        names = (self.categories, self.events, self.annotations, self.specifications, self.kernels)
        interned = b"".join(each.new for each in (*names, self.launch_arguments))
        for each in (*names, self.launch_arguments):
            each.new = b""
        head = b"" if ns is None else number(8, self.base_ns + ns)
        head += number(10, SEQUENCE) + (message(12, interned) if interned else b"")
        self.out += message(1, head + content)

    def fact(self, name: str, value: Any) -> None:
        """A top-level key, in the metadata that Chrome writes."""
        self.packet(message(5, message(2, message(1, name) + message(5, json.dumps(value)))))

    def track(self, process: Any, thread: Any, name: str = "") -> int:
        key = (process, thread)
        if key not in self.tracks:
            self.tracks[key] = len(self.tracks) + 1
        pid, tid = (
            value if isinstance(value, int) else self.numbers.setdefault(value, 0x7000_0000 + len(self.numbers))
            for value in key
        )
        content = number(1, self.tracks[key]) + message(2, name)
        if thread is None:
            content += message(3, number(1, pid) + message(6, name))
        else:
            content += message(4, number(1, pid) + number(2, tid) + message(5, name))
        self.packet(message(60, content))
        return self.tracks[key]

    def value(self, value: Any) -> bytes:
        match value:
            case bool():
                return number(2, value)
            case int():
                return number(4, value)
            case float():
                return double(5, value)
            case str():
                return message(6, value)
            case list():
                return b"".join(message(12, self.value(each)) for each in value) or message(9, "[]")
            case dict():
                return b"".join(message(11, message(10, key) + self.value(each)) for key, each in value.items())
        return b""

    def begin(self, event: dict[str, Any], ns: int, kind: int = 1) -> None:
        content = number(9, kind) + number(11, self.tracks[event["pid"], event["tid"]])
        content += message(3, varint(self.categories.iid(event.get("cat", "")))) if kind == 1 else b""
        content += number(10, self.events.iid(str(event["name"])))
        for key, value in event.get("args", {}).items():
            content += message(4, number(1, self.annotations.iid(key)) + self.value(value))
        self.packet(message(11, content), ns)

    def end(self, event: dict[str, Any], ns: int) -> None:
        self.packet(message(11, number(9, 2) + number(11, self.tracks[event["pid"], event["tid"]])), ns)

    def stage(self, event: dict[str, Any], begin: int, end: int, waits: Iterable[int] = ()) -> int:
        """Writes device work that waits for other work. Returns the id of the stage."""
        self.stages += 1
        args = dict(event.get("args", {}))
        content = number(1, self.stages) + number(2, end - begin) + number(11, int(event["pid"]))
        content += b"".join(number(18, each) for each in waits)
        content += number(14, self.specifications.iid(STAGES[event["cat"]]))
        if event["cat"] == "kernel":
            content += number(19, self.kernels.iid(event["name"]))
        else:
            content += number(20, self.events.iid(event["name"]))
        launch = b""
        for field, key in ((1, "grid"), (2, "block")):
            sides = args.get(key)
            if isinstance(sides, list) and len(sides) == 3 and all(type(side) is int for side in sides):
                launch += message(field, b"".join(number(at + 1, side) for at, side in enumerate(args.pop(key))))
        if isinstance(args.get("registers per thread"), int):
            iid = self.launch_arguments.iid("registers_per_thread")
            launch += message(3, number(1, iid) + number(3, args.pop("registers per thread")))
        args.setdefault("stream", event["tid"])
        for key, value in args.items():
            text = value if isinstance(value, str) else json.dumps(value)
            content += message(6, message(1, RENAMED.get(key, key)) + message(2, text))
        self.packet(message(53, content + (message(21, launch) if launch else b"")), begin)
        return self.stages

    def counters(self, events: Iterable[dict[str, Any]], ns: int, device: int, names: list[str]) -> None:
        """One sample of each counter; the first packet has their names."""
        specifications = b"".join(message(1, number(1, at) + message(2, name)) for at, name in enumerate(names))
        content = message(1, specifications) + number(3, device)
        for event in events:
            content += message(2, number(1, names.index(event["name"])) + double(3, event["value"]))
        self.packet(message(52, content), ns)


def ns_of(us: Any) -> int:
    """Nanoseconds of a time in microseconds, which a file may have as text."""
    whole, _, fraction = str(us).partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 1000 + sign * int((fraction + "000")[:3]) if "e" not in str(us) else round(float(us) * 1000)


def on_device(event: dict[str, Any]) -> bool:
    return event.get("cat") in STAGES and isinstance(event["pid"], int)


def dependencies_of(events: Iterable[dict[str, Any]]) -> tuple[dict[int, Any], dict[Any, list[int]]]:
    """Returns the place and time where each flow between device work begins, and the flows that end at a place."""
    ends: dict[int, Any] = {}
    waits: dict[Any, list[int]] = {}
    for event in events:
        if event.get("ph") in ("s", "f") and event["id"] >= 1 << 40:
            place = (event["pid"], event["tid"], ns_of(event["ts"]))
            if event["ph"] == "s":
                ends[event["id"]] = place
            else:
                waits.setdefault(place, []).append(event["id"])
    return ends, waits


def perfetto_of(trace: dict[str, Any], in_columns: bool = True) -> bytes:
    """Returns the packets of a Kineto trace."""
    writer = Writer(int(trace.get("baseTimeNanoseconds", 0)))
    for key, value in trace.items():
        if key not in ("traceEvents", "baseTimeNanoseconds"):
            writer.fact(key, value)
    slices = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    named = {
        (event["pid"], event["tid"] if event["name"] == "thread_name" else None): str(event["args"]["name"])
        for event in trace["traceEvents"]
        if event.get("ph") == "M" and event["name"] in ("thread_name", "process_name")
    }
    for (process, thread), name in named.items():
        writer.track(process, thread, name)
    for event in slices:
        if (event["pid"], event["tid"]) not in writer.tracks:
            writer.track(event["pid"], event["tid"])
    instants = [event for event in trace["traceEvents"] if event.get("ph") == "i"]
    times = [(ns_of(event["ts"]), ns_of(event["ts"]) + ns_of(event.get("dur", 0))) for event in slices]
    stage_at: dict[tuple[Any, Any, int], int] = {}  # by device, stream and end
    ends_at, waits_at = dependencies_of(trace["traceEvents"])
    marks: list[tuple[int, int, int, int, bool]] = []  # outer slices begin first and end last
    for at, (event, (begin, end)) in enumerate(zip(slices, times, strict=True)):
        if on_device(event):
            place = (event["pid"], event["tid"])
            waits = [stage_at[ends_at[each]] for each in waits_at.get((*place, begin), ())]
            stage_at[(*place, end)] = writer.stage(event, begin, end, waits)
        elif in_columns:
            writer.begin(event, begin)
        else:
            marks.append((begin, 1, begin - end, at, True))
            marks.append((end, 0, -begin, -at, False) if end > begin else (begin, 1, 0, at, False))
    if in_columns:
        for event, (_, end) in zip(slices, times, strict=True):
            if not on_device(event):
                writer.end(event, end)
    for ns, _, _, at, begins in sorted(marks, key=lambda mark: (*mark[:4], not mark[4])):
        (writer.begin if begins else writer.end)(slices[abs(at)], ns)
    for event in instants:
        if (event["pid"], event["tid"]) not in writer.tracks:
            writer.track(event["pid"], event["tid"])
        writer.begin(event, ns_of(event["ts"]), kind=3)
    return bytes(writer.out)


def convert(source: Path, target: Path, in_columns: bool = True) -> None:
    """Writes a JSON trace again, compressed as torch does."""
    raw = source.read_bytes()
    trace = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    trace = {"traceEvents": trace} if isinstance(trace, list) else trace
    target.write_bytes(gzip.compress(perfetto_of(trace, in_columns), 1))
