"""Reads an allocator snapshot: `torch.cuda.memory._dump_snapshot()` pickles and JSON, plain or gzipped."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.errors import TooLarge, Unreadable
from tb_bottleneck.sources.blocks import Blocks, Bounds
from tb_bottleneck.sources.snapshot.fast_entries import FastEntries
from tb_bottleneck.sources.snapshot.memo import PICKLE_LIMITS, PickleLimits
from tb_bottleneck.sources.snapshot.plain_pickle import PlainUnpickler
from tb_bottleneck.sources.snapshot.snapshot_columns import Annotation, Frame, SnapshotColumns

Ints = NDArray[np.int64]

# Enough for a dump of all events of a long training. A larger dump takes longer to read, and nothing more is learnt
# from it.
SNAPSHOT_BOUNDS = Bounds(block=1 << 20, inflated=8 << 30)
# The JSON decoder needs the whole text and all its values in memory, about ten times the size of the text.
MAX_JSON_BYTES = 64 << 20
_PICKLE_START = b"\x80"
_MAX_LISTS = 64


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


def read_snapshot(
    path: str, bounds: Bounds = SNAPSHOT_BOUNDS, limits: PickleLimits = PICKLE_LIMITS
) -> AllocatorSnapshot:
    """Returns the snapshot at `path`.

    Raises:
        NotFound: the file does not exist.
        Inaccessible: the operating system or the store refuses to read the file.
        Unreadable: the file is not a snapshot, is damaged, or has opcodes that can execute code.
        TooLarge: the file exceeds a limit.
    """
    blocks = Blocks(path, bounds)
    return snapshot_of(iter(blocks), limits)


def snapshot_of(blocks: Iterator[bytes], limits: PickleLimits = PICKLE_LIMITS) -> AllocatorSnapshot:
    """Returns the snapshot in `blocks`, the plain bytes of a file. Raises Unreadable or TooLarge."""
    first = next(blocks, b"")
    columns = SnapshotColumns()
    whole = chain([first], blocks)
    if first[:64].lstrip()[:1] in (b"{", b"["):
        rest = _read_json(whole, columns)
    elif first.startswith(_PICKLE_START):
        rest = PlainUnpickler(whole, columns, FastEntries(columns), limits).load()
    else:
        raise Unreadable("The file is no allocator snapshot: it is neither a pickle nor JSON.")
    known = isinstance(rest, dict) and ("segments" in rest or "device_traces" in rest)
    if not columns.seen and not known:
        raise Unreadable("The file is no allocator snapshot: it has neither segments nor device traces.")
    settings = rest.get("allocator_settings") if isinstance(rest, dict) else None
    return AllocatorSnapshot(
        entries=columns.entries.build(),
        segments=columns.segments.build(),
        blocks=columns.blocks.build(),
        frames=tuple(columns.frames),
        stacks=tuple(columns.stacks),
        annotations=tuple(columns.annotations),
        settings=_plain(settings),
    )


def _plain(settings: Any) -> dict[str, Any]:
    """Returns those of the allocator's settings whose values are texts, numbers or booleans."""
    if not isinstance(settings, dict):
        return {}
    pairs = list(settings.items())[:_MAX_LISTS]
    return {key[:64]: value for key, value in pairs if isinstance(key, str) and isinstance(value, str | int | float)}


def _read_json(blocks: Iterator[bytes], columns: SnapshotColumns) -> Any:
    """Adds the records of a JSON snapshot to `columns`. Returns the outermost value of the snapshot if it is a dict,
    else None. Raises Unreadable or TooLarge."""
    parts, size = [], 0
    for block in blocks:
        size += len(block)
        if size > MAX_JSON_BYTES:
            raise TooLarge(
                f"A snapshot as JSON may have {MAX_JSON_BYTES >> 20} MiB. Keep the pickle, which is smaller."
            )
        parts.append(block)
    try:
        value = msgspec.json.decode(b"".join(parts))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"The snapshot cannot be read as JSON: {error}.") from None
    if isinstance(value, list):
        columns.take("", 0, value)
    if not isinstance(value, dict):
        return None
    for key in ("segments", "external_annotations"):
        items = value.get(key)
        columns.take(key, 0, items if isinstance(items, list) else [])
    traces = value.get("device_traces")
    for device, entries in enumerate(traces[:_MAX_LISTS] if isinstance(traces, list) else ()):
        columns.take("device_traces", device, entries if isinstance(entries, list) else [])
    return value
