"""Reads a log of torch.compile. A log is untrusted: sizes are limited, and damaged lines and entries are left out.

A record is a line `V1123 02:56:48.120000 PROCESS FILE:LINE] {JSON}`; the lines of its payload begin with a tab
(pytorch torch/_logging/_internal.py, trace_structured). Paths in a log are absolute.
"""

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import BinaryIO

import msgspec

from tb_bottleneck.schema.compile_entries import CompileEntries

MAX_BYTES = 256 << 20
"""Bytes of a log that are read. Most of a log is generated code. A model with a few compilations writes 2 MB."""

MAX_LINE = 1 << 20
"""Bytes of a line; longer lines are left out. A record of a compilation, with torch's configuration, has 40 kB."""

_MAX_PAYLOAD, _MAX_TEXT, _MAX_STRINGS = 200, 2_000, 10_000
_HEAD = re.compile(rb"[A-Z]\d{4} [\d:.]{8,20} (\d{1,10}) [^\]]{1,500}\] (?=\{)")
# The records that are used; all others are skipped without reading their JSON.
_USED = re.compile(
    rb'\{"(?:(?:bwd_)?compilation_metrics|dynamo_start|str|(artifact": \{"name": "dynamo_graph_break_reason))"'
)
_BREAK = re.compile(r"Graph break in user code at (.{1,1000}):(\d{1,9})$")
_REASON, _CALLED, _TRACEBACK = "Graph Break Reason: ", "Encountered graph break when", "User code traceback:"
_FRAME = re.compile(r'  File ".*", line \d+, in (\S{1,200})$')
_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")


class Compilation(msgspec.Struct):
    """The used fields of torch's CompilationMetrics. Older releases of torch write the times in seconds only."""

    compile_id: str | None = None
    co_name: str | None = None
    co_filename: str | None = None
    co_firstlineno: int | None = None
    start_time_us: int | None = None
    duration_us: int | None = None
    start_time: float | None = None
    entire_frame_compile_time_s: float | None = None
    recompile_reason: str | None = None
    fail_type: str | None = None
    fail_reason: str | None = None
    fail_user_frame_lineno: int | None = None


class _Frame(msgspec.Struct):
    name: str = ""
    filename: int = -1


class _Start(msgspec.Struct):
    stack: list[_Frame] = []


class _Record(msgspec.Struct):
    rank: int | None = None
    compilation_metrics: Compilation | None = None
    bwd_compilation_metrics: Compilation | None = None
    dynamo_start: _Start | None = None
    string: tuple[str, int] | None = msgspec.field(default=None, name="str")


class CompileLogFile:
    """The log of one process: the rank, the start of the first compilation (us since 1970) and the entries.

    `rank` and `begin_us` are None if the log does not have them. Compilations that start after `until_us` (us since
    1970) are left out.
    """

    def __init__(self, file: BinaryIO, until_us: float) -> None:
        self.rank: int | None = None
        self.begin_us: float | None = None
        self._strings: dict[int, str] = {}
        self._folder = ""  # of the script
        self._entries = CompileEntries(self._shown)
        for json, payload in _records(file):
            try:
                record = msgspec.json.decode(json, type=_Record)
            except (msgspec.MsgspecError, RecursionError, ValueError):
                continue
            if not self._add(record, payload, until_us):
                break

    @property
    def fact(self) -> dict[str, list[list[object]]]:
        """The entries in the form in which the monitor records them (schema/compile_entries.py)."""
        return self._entries.fact()

    def _add(self, record: _Record, payload: list[bytes], until_us: float) -> bool:
        """Adds a record and its payload. Returns False if the record is a compilation that starts after `until_us`;
        reading then ends."""
        self.rank = record.rank if record.rank is not None else self.rank
        compiled = record.compilation_metrics or record.bwd_compilation_metrics
        if record.string is not None and len(self._strings) < _MAX_STRINGS:
            self._strings[record.string[1]] = record.string[0]
        elif record.dynamo_start is not None:
            frames = (frame.filename for frame in record.dynamo_start.stack if frame.name == "<module>")
            self._folder = self._folder or os.path.dirname(self._strings.get(next(frames, -1), ""))
        elif compiled is not None:
            _fill_times(compiled)
            if compiled.start_time_us is not None and compiled.start_time_us > until_us:
                return False
            self.begin_us = self.begin_us or compiled.start_time_us
            self._entries.add(compiled)
        elif payload:
            self._add_break([line.decode("utf-8", "replace").rstrip("\n") for line in payload])
        return True

    def _add_break(self, lines: list[str]) -> None:
        """Adds the graph break that `lines` describe: its place, its reason, and the function of the innermost frame of
        the program."""
        place = _BREAK.match(lines[0])
        if place is None:
            return
        end = lines.index(_TRACEBACK) if _TRACEBACK in lines else len(lines)
        said = (line.removeprefix(_REASON) for line in lines[1:end])
        reason = [line for line in said if line.strip() and not line.startswith(_CALLED)]
        frames = takewhile(bool, lines[end + 1 :])
        called = [frame[1] for line in frames if (frame := _FRAME.match(line))]
        self._entries.add_break(place[1], int(place[2]), called[-1] if called else "", "\n".join(reason))

    def _shown(self, path: str) -> str:
        """Returns `path` relative to the folder of the script or of the installed packages; otherwise the file's
        name."""
        if self._folder and path.startswith(f"{self._folder}/"):
            return path[len(self._folder) + 1 :]
        installed = _INSTALLED.match(path)
        return path[installed.end() :] if installed else re.split(r"[/\\]", path)[-1]


def process_of(file: BinaryIO) -> int | None:
    """Returns the id of the process that began the log in `file`, or None if `file` is not a log of torch.compile."""
    head = _HEAD.match(file.readline(MAX_LINE))
    return int(head[1]) if head else None


def _records(file: BinaryIO) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yields the JSON of each record that is used, and the first lines of its payload if it is a graph break."""
    json, payload, is_break = b"", list[bytes](), False
    for line in _lines(file):
        if line.startswith(b"\t"):
            if is_break and len(payload) < _MAX_PAYLOAD:
                payload.append(line[1:_MAX_TEXT])
            continue
        if json:
            yield json, payload
        head = _HEAD.match(line)
        used = _USED.match(line, head.end()) if head else None
        json, payload = line[head.end() :] if head and used else b"", []
        is_break = bool(used and used[1])
    if json:
        yield json, payload


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of the first MAX_BYTES of `file`, without lines longer than MAX_LINE."""
    left, whole = MAX_BYTES, True
    while left > 0 and (line := file.readline(MAX_LINE)):
        left -= len(line)
        ends = line.endswith(b"\n")
        if whole and ends:
            yield line
        whole = ends


def _fill_times(compiled: Compilation) -> None:
    """Fills in missing times in us from the times in seconds. Negative and huge times are left out."""
    seconds, took = compiled.start_time, compiled.entire_frame_compile_time_s
    if compiled.start_time_us is None and seconds is not None and 0 <= seconds < 2**40:
        compiled.start_time_us = int(seconds * 1e6)
    if compiled.duration_us is None and took is not None and 0 <= took < 2**40:
        compiled.duration_us = int(took * 1e6)
