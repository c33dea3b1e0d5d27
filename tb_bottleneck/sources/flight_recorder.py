"""Reads dumps of torch's Flight Recorder: the collectives that a rank called, as pickle or JSON. Nothing is executed.

torch writes one file per rank, `<prefix><rank>`, for example `comm_lib_trace_rank_3` (FlightRecorder.hpp). The content
is untrusted: only plain data are read, up to a size limit.
"""

import ast
import os
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, BinaryIO, TypeGuard

import msgspec

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.base.limited_process import run_limited
from tb_bottleneck.base.persistence import open_regular
from tb_bottleneck.base.units import one_line
from tb_bottleneck.sources.plain_pickle import plain_value

MAX_BYTES = 256 << 20
MAX_DUMPS = 4_096
MAX_NAME = 200
MAX_FRAMES = 12  # of a stack, the innermost
MAX_DIMENSIONS = 64  # of a tensor in torch
_FILE = re.compile(r"^[\w.-]*rank_?(\d{1,6})(\.json|\.pkl|\.pickle)?$", re.ASCII)
_OF_TORCH = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch[/\\]")

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Call:
    """One call of a collective.

    `sequence` counts the collectives of the process group `group`; the parts of a coalesced collective share a number.
    `name` is torch's name of the call. `inputs` and `outputs` are shapes of tensors. `types` has the data types of the
    inputs, a space, and those of the outputs. `state` is scheduled, started or completed. `place` is FILE:LINE of the
    innermost frame outside torch, or of the innermost frame if all are in torch; empty if no frames were recorded.
    `stack` has the frames outside torch, innermost first, if they were asked for.
    """

    group: str
    sequence: int
    name: str
    inputs: Shapes
    outputs: Shapes
    types: str
    state: str
    place: str
    stack: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dump:
    """The recorded calls of one rank, in the order of the file.

    `groups` maps the name of a process group to its ranks. `modified_ns` is the time of the last change of the file, in
    ns since 1970."""

    rank: int
    calls: tuple[Call, ...]
    groups: dict[str, tuple[int, ...]]
    modified_ns: int


def is_dump_name(name: str) -> bool:
    """Returns True if a file with this name may be a dump, because the name ends with the number of a rank."""
    return _FILE.match(name) is not None


def has_dumps(folder: str) -> bool:
    """Returns True if `folder` is a directory with a file that torch named like a dump. Dumps in JSON do not count,
    because traces may have the same names."""
    try:
        return any(is_dump_name(name) and not name.endswith(".json") for name in os.listdir(folder))
    except OSError:
        return False


def dumps_in(folder: str, stacks_of: Container[int] = ()) -> list[Dump]:
    """Returns the newest dump of each rank in `folder`, sorted by rank. Other and damaged files are ignored. The files
    are read in a process of its own, with limits on memory and time. If `stacks_of` has ranks, reads only the dumps of
    these ranks, with the stacks of their calls."""
    try:
        names = sorted(name for name in os.listdir(folder) if is_dump_name(name))[:MAX_DUMPS]
    except OSError:
        return []
    if stacks_of:
        names = [name for name in names if _rank_of(name) in stacks_of]
    dumps = _read_dumps([("+" if stacks_of else "-") + os.path.join(folder, name) for name in names])
    newest: dict[int, Dump] = {}
    for dump in dumps:
        if dump.rank not in newest or dump.modified_ns >= newest[dump.rank].modified_ns:
            newest[dump.rank] = dump
    return [newest[rank] for rank in sorted(newest)]


def _read_dumps(paths: list[str]) -> list[Dump]:
    """Returns the readable dumps of `paths`, as in `encoded_dumps`. If a file ends the process, the others are read
    without it."""
    try:
        encoded = run_limited(f"{__name__}:encoded_dumps", [b"\0".join(map(os.fsencode, paths))])
        return msgspec.msgpack.decode(encoded, type=list[Dump])
    except (OSError, msgspec.ValidationError, BottleneckError):
        middle = len(paths) // 2
        return [*_read_dumps(paths[:middle]), *_read_dumps(paths[middle:])] if middle else []


def encoded_dumps(file: BinaryIO) -> bytes:
    """Returns the readable dumps of the paths in `file`, which null bytes separate, as MessagePack. Before each path is
    "+" if the stacks of its calls are wanted, otherwise "-"."""
    paths = map(os.fsdecode, filter(None, file.read().split(b"\0")))
    return msgspec.msgpack.encode(
        [msgspec.Raw(dump) for path in paths for dump in [_encoded(path[1:], path[0] == "+")] if dump]
    )


def _rank_of(name: str) -> int:
    named = _FILE.match(name)
    return int(named[1]) if named else -1


def _encoded(path: str, with_stacks: bool) -> bytes:
    """Returns the dump in the file at `path`, whose name must end with the rank; empty if it is not a readable dump."""
    rank = _rank_of(os.path.basename(path))
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            data = file.read(MAX_BYTES + 1)
        if rank < 0 or len(data) > MAX_BYTES:
            return b""
        value = msgspec.json.decode(data) if data[:1] == b"{" else plain_value(BytesIO(data))
        dump = _dump(value, rank, status.st_mtime_ns, with_stacks)
        return msgspec.msgpack.encode(dump) if dump is not None else b""
    except (OSError, ValueError, OverflowError, RecursionError, MemoryError, BottleneckError):
        return b""


def _dump(value: Any, rank: int, modified_ns: int, with_stacks: bool) -> Dump | None:
    if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
        return None
    entries = [entry for entry in value["entries"] if isinstance(entry, dict)]
    calls = [call for entry in entries for call in [_call(entry, with_stacks)] if call is not None]
    configs = value.get("pg_config")
    groups = {
        _text(name): _ranks(config.get("ranks"))
        for name, config in (configs.items() if isinstance(configs, dict) else ())
        if isinstance(config, dict)
    }
    return Dump(rank, tuple(calls), groups, modified_ns)


def _call(entry: dict[Any, Any], with_stack: bool) -> Call | None:
    """Returns the call of a collective; None for a damaged entry, or for a point-to-point operation, which other ranks
    need not call."""
    group, sequence = entry.get("process_group"), _number(entry.get("collective_seq_id"))
    if entry.get("is_p2p") or sequence is None or not isinstance(group, list | tuple) or not group:
        return None
    most = MAX_FRAMES if with_stack else 0
    return Call(
        _text(group[0]),
        sequence,
        _text(entry.get("profiling_name")),
        _shapes(entry.get("input_sizes")),
        _shapes(entry.get("output_sizes")),
        f"{_text(entry.get('input_dtypes'))} {_text(entry.get('output_dtypes'))}",
        "completed" if entry.get("retired") else _text(entry.get("state")),
        next(map(_place, _own_frames(entry.get("frames"))), ""),
        tuple(
            f"{_place(frame)} {_text(frame.get('name'))}" for frame in islice(_own_frames(entry.get("frames")), most)
        ),
    )


def _number(value: object) -> int | None:
    """Returns a sequence number, which some writers put into a string; None if `value` is not a number."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if _is_whole(value) else None


def _is_whole(value: object) -> TypeGuard[int]:
    return type(value) is int and abs(value) < 1 << 62


def _shapes(value: object) -> Shapes:
    shapes = value if isinstance(value, list | tuple) else ()
    known = [shape[:MAX_DIMENSIONS] for shape in shapes if isinstance(shape, list | tuple)]
    return tuple(tuple(filter(_is_whole, shape)) for shape in known)


def _own_frames(frames: object) -> Iterator[dict[Any, Any]]:
    """Yields the frames outside torch, innermost first; the innermost frame if all are in torch."""
    known = [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []
    own = (frame for frame in known if not _OF_TORCH.search(_text(frame.get("filename"))))
    first = next(own, known[0] if known else None)
    if first is not None:
        yield first
        yield from own


def _place(frame: dict[Any, Any]) -> str:
    return f"{_text(frame.get('filename'))}:{_text(frame.get('line'))}"


def _text(value: object) -> str:
    return one_line(value, MAX_NAME) if value is not None else ""


def _ranks(value: object) -> tuple[int, ...]:
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value) if len(value) < 1 << 20 else ()
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ()
    if not isinstance(value, list | tuple) or not all(map(_is_whole, value)):
        return ()
    return tuple(value)
