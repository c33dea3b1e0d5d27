"""Fuzzes with damaged recordings: `python tests/fuzz.py --seconds 600`, or `--entry compare` and the like.

Files are cut, spliced and bit-flipped; keys are doubled, numbers mangled, events swapped. For any file content, the
result must be a report, trees and a timeline: only our own errors are raised, no rule breaks, and no file takes long.
Inputs with new behaviour (by health and lost parts) are damaged further, as AFL does. A failing file is reduced to the
smallest part that still fails, and saved under --keep; it belongs in tests/traces, with the defect as its name.
"""

import argparse
import gzip
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from fuzz_entries import ENTRIES, behaviour_of, impossible  # noqa: E402

from tb_bottleneck.base.errors import BottleneckError  # noqa: E402
from tb_bottleneck.bottlenecks.texts import word  # noqa: E402
from tb_bottleneck.diagnosis.trace import diagnose  # noqa: E402
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace  # noqa: E402
from tb_bottleneck.drilldown.timeline import time_range_of, timeline_of  # noqa: E402
from tb_bottleneck.drilldown.trace_slice import slice_of  # noqa: E402
from tb_bottleneck.drilldown.tree.message import tree_message  # noqa: E402
from tb_bottleneck.drilldown.tree.paths import BY  # noqa: E402
from tb_bottleneck.drilldown.tree.selection import Selection  # noqa: E402
from tb_bottleneck.report.json_form import as_json  # noqa: E402
from tb_bottleneck.trace.trace import Trace, load  # noqa: E402

LARGEST = 60_000  # bytes of an input: a larger one takes longer and shows nothing more
BROKEN_REPLAY = word("broken").substitute()
SLOW_SECONDS = 5.0  # a file of 60 KB takes some hundredths
OLD = 1e9  # a file of this age is not being written any more
MOST_KEPT = 2_000  # inputs that behaved in a new way
SECONDS_TO_SHRINK = 20.0
PIXELS = 800.0

_EVENT = re.compile(rb"\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}")
_MEMBER = re.compile(rb'"[^"\\]{1,40}"\s*:\s*(?:"[^"\\]*"|-?[\d.]+|\[[^][]*\]|null)')
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
NUMBERS = [
    b"0", b"-0", b"-1", b"1e308", b"1e999", b"-1e999", b"1e-400", b"NaN", b"Infinity", b"-Infinity", b"nan", b"N/A",
    b"null", b"true", b'"7"', b'"7.5"', b'""', b"9" * 19, b"9" * 400, b"0x10", b"007", b".5", b"5.", b"1.2.3", b"--1",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"4611686018427387904", b"[]", b"{}",
    b"4294967296", b"0.0005", b"1795251683383494.171", b"9007199254740993", b"1" + b"0" * 60, b"-" + b"9" * 40,
]  # fmt: skip
WORDS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"},", b"]}", b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\n",
    b"\r\n", b" " * 300, b"\x1f\x8b\x08", b"[" * 1200, b'{"a":' * 1200, b'{"ph": "X"', b'"traceEvents": [',
    b'"args": {', b'"Input Dims": [[', b'"grid": [', b'"correlation": 0', b'"dur": -5', b"ProfilerStep#1",
    b"DataLoader", b"\xe2\x80\xa8",
]  # fmt: skip
KINDS = (
    b"cpu_op", b"kernel", b"gpu_memcpy", b"gpu_memset", b"cuda_runtime", b"cuda_driver", b"python_function",
    b"user_annotation", b"overhead", b"hip_runtime", b"Kernel", b"Operator", b"mtia_ccp_events", b"ac2g",
)  # fmt: skip


def flip(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Flips one bit."""
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def cut(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Removes a part, or the rest of the file."""
    at = chance.randrange(len(data) + 1)
    del data[at : len(data) if chance.random() < 0.2 else at + chance.choice([1, 4, 30, 300, 3000])]


def splice(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Inserts a part of another file, or overwrites with it."""
    at, begin = chance.randrange(len(data) + 1), chance.randrange(len(other) + 1)
    size = chance.choice([5, 50, 500, 5000])
    data[at : at + chance.choice([0, size])] = other[begin : begin + size]


def insert(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Inserts a piece of syntax."""
    at = chance.randrange(len(data) + 1)
    data[at : at + chance.choice([0, 0, 1, 5])] = chance.choice(WORDS)


def double(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Repeats a key with its value, or an event."""
    match = _one(_MEMBER if chance.random() < 0.7 else _EVENT, data, chance)
    if match:
        data[match.end() : match.end()] = b", " + match[0]


def swap(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Exchanges two events."""
    matches = [_one(_EVENT, data, chance), _one(_EVENT, data, chance)]
    events = sorted((match for match in matches if match), key=_begin)
    if len(events) == 2 and events[0].end() <= events[1].start():
        first, last = events
        data[first.start() : last.end()] = last[0] + data[first.end() : last.start()] + first[0]


def mangle(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Replaces a number by another one, or by something else."""
    match = _one(_NUMBER, data, chance)
    if match:
        data[match.start() : match.end()] = chance.choice([*NUMBERS, str(chance.randrange(-(2**40), 2**40)).encode()])


def rename(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Replaces a category, or any string of letters, by a category."""
    match = _one(re.compile(rb"(?<=\")[a-zA-Z_]+(?=\")"), data, chance)
    if match:
        data[match.start() : match.end()] = chance.choice(KINDS)


def repeat(data: bytearray, chance: random.Random, other: bytes) -> None:
    """Repeats a part."""
    at, size = chance.randrange(len(data) + 1), chance.choice([1, 10, 100, 1000])
    data[at:at] = data[at : at + size] * chance.choice([1, 3, 30])


MUTATIONS: tuple[Callable[[bytearray, random.Random, bytes], None], ...] = (
    flip, cut, splice, insert, double, swap, mangle, mangle, rename, repeat,
)  # fmt: skip


def _begin(match: "re.Match[bytes]") -> int:
    return match.start()


def _one(pattern: "re.Pattern[bytes]", data: bytearray, chance: random.Random) -> "re.Match[bytes] | None":
    """Returns a match after a random position, or the first one."""
    at = chance.randrange(len(data) + 1)
    return pattern.search(bytes(data), at) or pattern.search(bytes(data))


def damaged(data: bytes, chance: random.Random, other: bytes) -> bytes:
    """Returns the file with a few changes; sometimes compressed, sometimes with damaged compressed bytes."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6, 12])):
        chance.choice(MUTATIONS)(changed, chance, other)
    del changed[LARGEST:]
    if chance.random() < 0.9:
        return bytes(changed)
    zipped = bytearray(gzip.compress(bytes(changed), 1))
    if chance.random() < 0.5:
        chance.choice((flip, cut, splice, repeat))(zipped, chance, other)
    return bytes(zipped)


def corpus() -> list[bytes]:
    """Returns the files of tests/traces, and the beginnings of recordings: the demo's, and public ones if available."""
    real = [*(CHECKOUT / "demo" / "recorded").rglob("*.json.gz")]
    real += Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent")).glob("*.json.gz")
    files = [path.read_bytes() for path in sorted((CHECKOUT / "tests" / "traces").glob("*.json*"))]
    return [data for data in files if data] + [part for path in sorted(real) for part in _parts(path)]


def _parts(path: Path) -> Iterator[bytes]:
    """Yields the head of a recording with some of its first events, and with some from its middle."""
    with gzip.open(path) as file:
        text = file.read(4 << 20)
    begin = re.search(rb'"traceEvents"\s*:\s*\[', text)
    if begin and begin.end() < LARGEST // 4:
        events = [match[0] for match in _EVENT.finditer(text, begin.end())]
        for first in (0, len(events) // 2):
            yield text[: begin.end()] + b",\n".join(events[first : first + 120])[: LARGEST // 2] + b"]}"


@dataclass
class Find:
    """A failing file, and the description of its failure."""

    data: bytes
    words: str


@dataclass
class Fuzzer:
    """One search: its inputs, the behaviours seen, and the finds."""

    chance: random.Random
    folder: Path
    inputs: list[bytes]
    entry: str = "trace"
    cases: int = 0
    slowest: float = 0.0
    seen: set[object] = field(default_factory=set)
    finds: list[Find] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Tries damaged files until the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.one()

    def one(self) -> None:
        """Tries one damaged file."""
        data = damaged(self.chance.choice(self.inputs), self.chance, self.chance.choice(self.inputs))
        self.cases += 1
        words, behaviour = self.examine(data)
        if words and words not in {find.words for find in self.finds}:
            self.finds.append(Find(self.shrunk(data, words), words))
        if behaviour not in self.seen and len(self.seen) < MOST_KEPT:
            self.seen.add(behaviour)
            self.inputs.append(data)

    def examine(self, data: bytes) -> tuple[str, object]:
        """Returns (description of the failure, or "" if there is none; behaviour) for this file."""
        path = self.folder / "case.json"
        path.write_bytes(data)
        os.utime(path, (OLD, OLD))
        began = time.process_time()  # CPU time, so that a busy machine makes no file slow
        try:
            behaviour: tuple[object, ...] = (
                self._behaviour(str(path))
                if self.entry == "trace"
                else behaviour_of(ENTRIES[self.entry], self.folder, data)
            )
        except Exception as error:  # a find
            return f"{type(error).__name__} in {_place_of(error)}", None
        took = time.process_time() - began
        self.slowest = max(self.slowest, took)
        return ("slow" if took > SLOW_SECONDS else ""), behaviour

    def _behaviour(self, path: str) -> tuple[object, ...]:
        report = diagnose(path)
        codes = tuple(reason.code for reason in report.health.reasons)
        try:
            trace = load(path)
        except BottleneckError as error:
            lost = (type(error).__name__,)
        else:
            lost = (*sorted(trace.lost), trace.truncated[:20])
            drill_down(trace)
        if codes == ("broken",):
            raise AssertionError(report.health.reasons[0].detail)
        broken = [verdict.because for verdict in report.regimes if verdict.status == "broken"]
        if broken:
            raise AssertionError(broken[0])
        if report.replay.because == BROKEN_REPLAY:
            raise AssertionError(BROKEN_REPLAY)
        if wrong := impossible(report):
            raise AssertionError(wrong[0])
        return (report.health.status, codes, lost, report.verdict.regime)

    def shrunk(self, data: bytes, words: str) -> bytes:
        """Returns the file without the parts that are not needed for the same failure."""
        end, size = time.monotonic() + SECONDS_TO_SHRINK, len(data) // 2
        while size and time.monotonic() < end:
            at = 0
            while at < len(data) and time.monotonic() < end:
                shorter = data[:at] + data[at + size :]
                if self.examine(shorter)[0] == words:
                    data = shorter
                else:
                    at += size
            size //= 2
        return data


def drill_down(trace: Trace) -> None:
    """Requests what the tab shows besides the report: timeline, trees, a slice."""
    case = InspectedTrace(trace)
    whole = time_range_of(case, None, None, PIXELS)
    trees = (tree_message(case, Selection(by)) for by in BY) if case.recording is not None else ()
    for answer in (timeline_of(case, whole), *trees):
        as_json(answer)
        if wrong := impossible(answer):
            raise AssertionError(wrong[0])
    slice_of(trace, whole.begin, whole.end)


def _place_of(error: BaseException) -> str:
    """Returns where the error was raised, or its message if that is in this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_code.co_filename if trace else ""
    return str(error)[:120] if name == __file__ or trace is None else f"{Path(name).name}:{trace.tb_lineno}"


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of the search (default: 60)")
    parser.add_argument(
        "--seed", type=int, default=None, help="seed of the search; how far it gets depends on the clock"
    )
    parser.add_argument(
        "--entry", choices=("trace", *ENTRIES), default="trace", help="what is damaged and used (default: trace)"
    )
    parser.add_argument("--keep", type=Path, default=None, help="folder for failing files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        inputs = corpus() if options.entry == "trace" else ENTRIES[options.entry].inputs()
        fuzzer = Fuzzer(random.Random(options.seed), Path(folder), inputs, options.entry)
        fuzzer.run(options.seconds)
    for number, find in enumerate(fuzzer.finds):
        print(f"{find.words}: {len(find.data)} bytes: {find.data[:300]!r}")
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"find{number}.json").write_bytes(find.data)
    print(
        f"{fuzzer.cases} files in {options.seconds:.0f} s, {len(fuzzer.seen)} different behaviours, "
        f"the slowest took {fuzzer.slowest:.2f} s, {len(fuzzer.finds)} finds"
    )
    return min(len(fuzzer.finds), 1)


if __name__ == "__main__":
    sys.exit(main())
