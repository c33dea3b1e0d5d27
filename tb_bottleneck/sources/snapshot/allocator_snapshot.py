"""Reads an allocator snapshot: `torch.cuda.memory._dump_snapshot()` pickles and JSON, plain or gzipped."""

from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.limited_process import run_limited
from tb_bottleneck.sources.blocks import Blocks, Bounds
from tb_bottleneck.sources.plain_pickle import plain_value
from tb_bottleneck.sources.snapshot.snapshot_columns import Annotation, Frame, SnapshotColumns, settings_of

Ints = NDArray[np.int64]

# Enough for a dump of all events of a long training. A larger dump takes longer to read, and nothing more is learnt
# from it.
SNAPSHOT_BOUNDS = Bounds(block=1 << 20, inflated=8 << 30)
_PICKLE_START = b"\x80"
_HEAD = 64


@dataclass(frozen=True, eq=False)
class AllocatorSnapshot:
    """A snapshot as columns. `entries`, `segments` and `blocks` map names of columns to arrays (snapshot_columns.py).

    `stacks[i]` has indices into `frames`, innermost first; stack 0 is empty. `settings` has the allocator's settings.
    """

    entries: dict[str, Ints]
    segments: dict[str, Ints]
    blocks: dict[str, Ints]
    frames: tuple[Frame, ...]
    stacks: tuple[tuple[int, ...], ...]
    annotations: tuple[Annotation, ...]
    settings: dict[str, Any]

    def frames_of(self, stack: int) -> list[Frame]:
        """Returns the frames of `stacks[stack]`, innermost first."""
        return [self.frames[row] for row in self.stacks[stack]]


def read_snapshot(path: str, bounds: Bounds = SNAPSHOT_BOUNDS) -> AllocatorSnapshot:
    """Returns the snapshot at `path`. The file is read in a process of its own, with limits on memory and time.

    Raises:
        NotFound: the file does not exist.
        Inaccessible: the operating system or the store refuses to read the file.
        Unreadable: the file is not a snapshot, is damaged, or can execute code.
        TooLarge: the file exceeds a limit.
        Unusable: an environment variable with a limit is not a positive number.
    """
    blocks = iter(Blocks(path, bounds))
    first = next(blocks, b"")
    if not _is_json(first) and not first.startswith(_PICKLE_START):
        raise Unreadable("The file is no allocator snapshot: it is neither a pickle nor JSON.")
    encoded = msgspec.msgpack.decode(run_limited(f"{__name__}:encoded_snapshot", chain([first], blocks)), type=_Encoded)
    entries, segments, of_blocks = (
        {name: np.frombuffer(column, np.int64) for name, column in columns.items()}
        for columns in (encoded.entries, encoded.segments, encoded.blocks)
    )
    lists = encoded.frames, encoded.stacks, encoded.annotations
    return AllocatorSnapshot(entries, segments, of_blocks, *lists, encoded.settings)


class _Encoded(msgspec.Struct):
    """An AllocatorSnapshot with arrays as bytes."""

    entries: dict[str, bytes]
    segments: dict[str, bytes]
    blocks: dict[str, bytes]
    frames: tuple[Frame, ...]
    stacks: tuple[tuple[int, ...], ...]
    annotations: tuple[Annotation, ...]
    settings: dict[str, Any]


def encoded_snapshot(file: BinaryIO) -> bytes:
    """Returns the snapshot in `file` as MessagePack. Raises as snapshot_in does."""
    return msgspec.msgpack.encode(snapshot_in(file), enc_hook=lambda column: column.data)


def snapshot_in(file: BinaryIO) -> AllocatorSnapshot:
    """Returns the snapshot in `file`, which has the plain bytes of a snapshot.

    Raises:
        Unreadable: the file is not a snapshot, is damaged, or can execute code.
        TooLarge: the file exceeds a limit.
        MemoryError: the snapshot does not fit into memory.
    """
    buffered = BufferedReader(file)  # type: ignore[type-var]
    value = _json(buffered.read()) if _is_json(buffered.peek(_HEAD)) else plain_value(buffered)
    if isinstance(value, list) and any(isinstance(item, dict) and "total_size" in item for item in value):
        value = {"segments": value}
    if not isinstance(value, dict) or not {"segments", "device_traces"} & value.keys():
        raise Unreadable("The file is no allocator snapshot: it has neither segments nor device traces.")
    columns = SnapshotColumns()
    columns.add_annotations(value.get("external_annotations"))
    columns.add_segments(value.get("segments"))
    columns.add_entries(value.get("device_traces"))
    return AllocatorSnapshot(
        entries=columns.entries.columns(),
        segments=columns.segments.columns(),
        blocks=columns.blocks.columns(),
        frames=tuple(columns.frames),
        stacks=tuple(columns.stacks),
        annotations=tuple(columns.annotations),
        settings=settings_of(value.get("allocator_settings")),
    )


def _is_json(head: bytes) -> bool:
    return head[:_HEAD].lstrip()[:1] in (b"{", b"[")


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"The snapshot cannot be read as JSON: {error}.") from None
