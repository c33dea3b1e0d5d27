"""Makes columns from the arguments of events: sequence numbers, correlation, devices, sizes, grids, operator shapes.

The argument `External id`, which should link device work to an operator, is not used, because it is missing or wrong in
many recordings.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tb_bottleneck.sources.trace_event import Args
from tb_bottleneck.trace.columns.number_columns import MAX_ID, whole_number, whole_numbers
from tb_bottleneck.trace.kinds import DEVICE_KINDS, Kind
from tb_bottleneck.trace.table import Ints, Rows

DEVICE_COLUMNS = ("device", "stream", "bytes", "blocks", "multiprocessors", "occupancy")

# Most bytes of distinct signatures (operator inputs). Models repeat shapes: a trace of 500 MB has less than 1 MB of
# distinct signatures.
MAX_SIGNATURE_BYTES = 64 << 20
# Launch configurations repeat too.
_GRIDS_REMEMBERED = 4096

Signature = tuple[bytes, bytes, bytes]
NO_SIGNATURE: Signature = (b"", b"", b"")

# A larger value is not a device index.
MAX_DEVICE = 2**31
# JSON text cannot contain this character, because control characters are escaped.
_SEPARATOR = b"\0"

_WITH_INPUTS = np.isin(range(len(Kind)), (Kind.CPU_OP, Kind.ANNOTATION))
_LINKED = np.isin(range(len(Kind)), (Kind.CALL, *DEVICE_KINDS))
_ON_DEVICE = np.isin(range(len(Kind)), DEVICE_KINDS)
_NO_ARGS = Args()
# torch's names for the types of a collective's elements (c10/core/ScalarType.h), in lower case.
_BYTES_OF_TYPE = {
    **dict.fromkeys(("byte", "char", "bool", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16", "short"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long", "complexfloat"), 8),
}


class Signatures(dict[bytes, int]):
    """Interned operator inputs, called signatures: a dict from a key to a row number.

    A key consists of the JSON texts of the inputs in the file, joined by _SEPARATOR. Looking up a new key adds an
    entry. If this would exceed MAX_SIGNATURE_BYTES, the lookup returns 0 and increments `lost`. `row_of` maps each
    signature (shapes, types, values) to its row, in order of the rows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.row_of: dict[Signature, int] = {NO_SIGNATURE: 0}
        self.lost = 0
        self._bytes = 0

    def __missing__(self, joined: bytes) -> int:
        new, old, types, concrete = joined.split(_SEPARATOR)
        if not new and not old:
            return 0
        self._bytes += len(joined)
        if self._bytes > MAX_SIGNATURE_BYTES:
            self.lost += 1
            return 0
        # The last events of a file are read by another decoder, which writes no space after a comma.
        dims, types, concrete = (text.replace(b", ", b",") for text in (new or old, types, concrete))
        self[joined] = row = self.row_of.setdefault((dims, types, concrete), len(self.row_of))
        return row


def operator_columns(signatures: Signatures, events: Sequence[Any], kind: Ints) -> dict[str, Ints]:
    """Returns the columns "sequence" and "signature", with one element per event. `kind` has the kind of each event.

    An element is 0 if the event is neither an operator nor an annotation, or does not have the argument. Annotations
    are read because those of collectives have shapes: in old recordings and with Gloo, no other event has the size of a
    collective.
    """
    operators = np.flatnonzero(_WITH_INPUTS[kind])
    all_args = _args_of(events, operators)
    rows = [signatures[joined_signature(args)] for args in all_args]
    values = {
        "sequence": whole_numbers([args.sequence or 0 for args in all_args]),
        "signature": np.array(rows, np.int64),
    }
    return _spread(values, operators, len(events))


def joined_signature(args: Args) -> bytes:
    """Returns the key in Signatures for the inputs in `args`: the texts of shapes, types and values, joined."""
    return _SEPARATOR.join((args.dims, args.dims_old, args.types, args.concrete))


def has_signature(kind: Kind) -> bool:
    """Returns True if events of this kind can have inputs: operators and annotations."""
    return bool(_WITH_INPUTS[kind])


def roles_of(kind: Kind) -> int:
    """Returns which arguments are read from events of this kind, as a sum of bits for the native scanner.

    The bits are 1 for inputs and sequence number, 2 for correlation, and 4 for the arguments of device work.
    """
    return 1 * int(_WITH_INPUTS[kind]) | 2 * int(_LINKED[kind]) | 4 * int(_ON_DEVICE[kind])


def argument_columns(events: Sequence[Any], kind: Ints) -> dict[str, Any]:
    """Returns the columns "correlation" and DEVICE_COLUMNS, with one element per event. `kind` has the kind of each
    event.

    An element is 0 if events of this kind do not have the argument.
    """
    linked, on_device = np.flatnonzero(_LINKED[kind]), np.flatnonzero(_ON_DEVICE[kind])
    columns: dict[str, Any] = dict.fromkeys(("correlation", *DEVICE_COLUMNS), np.zeros(len(events), np.int8))
    if len(linked):
        correlation = whole_numbers([args.correlation or 0 for args in _args_of(events, linked)])
        columns |= _spread({"correlation": correlation}, linked, len(events))
    if len(on_device):
        columns |= _spread(_device_work(_args_of(events, on_device)), on_device, len(events))
    return columns


def _spread(values: dict[str, Ints], rows: Rows, length: int) -> dict[str, Ints]:
    """Returns columns of `length` elements: at `rows` the elements of the columns in `values`, and 0 elsewhere."""
    columns = {name: np.zeros(length, np.int64) for name in values}
    for name, column in columns.items():
        column[rows] = values[name]
    return columns


def _args_of(events: Sequence[Any], rows: Rows) -> list[Args]:
    return [events[row].args or _NO_ARGS for row in rows.tolist()]


def _device_work(all_args: list[Args]) -> dict[str, Ints]:
    blocks = np.array([_blocks(*args.grid[:3]) if isinstance(args.grid, list) else 0 for args in all_args], np.int64)
    device = whole_numbers([args.device or 0 for args in all_args])
    return {
        "device": np.where(np.abs(device) < MAX_DEVICE, device, 0),
        "stream": whole_numbers([args.stream or 0 for args in all_args]),
        "bytes": whole_numbers([_size(args) for args in all_args]),
        "blocks": blocks,
        "multiprocessors": _multiprocessors(all_args, blocks),
        "occupancy": _occupancy(all_args),
    }


def _size(args: Args) -> Any:
    """Returns the size in bytes of a copy or fill. For a collective, returns the size of the input or of the output,
    whichever is larger (elements times bytes per element)."""
    if args.elements_in is None or not isinstance(args.dtype, str):
        return args.bytes or 0
    elements = max(whole_number(args.elements_in), whole_number(args.elements_out), 0)
    return min(elements * _BYTES_OF_TYPE.get(args.dtype.lower(), 0), MAX_ID - 1)


def _occupancy(all_args: list[Args]) -> Ints:
    """Returns the estimated occupancy in percent plus one; 0 if it was not recorded."""
    percents = whole_numbers([-1 if args.occupancy is None else args.occupancy for args in all_args])
    return np.where((percents >= 0) & (percents <= 100), percents + 1, 0)


@lru_cache(_GRIDS_REMEMBERED)
def _blocks(*grid: int | float) -> int:
    # Some ROCm versions write [0, 0, 0] for an unknown grid.
    product = 1
    for size in grid:
        product *= max(whole_number(size), 0)
    return min(product, MAX_ID - 1) if grid else 0


def _multiprocessors(all_args: list[Args], blocks: Ints) -> Ints:
    """Returns for each event the number of multiprocessors of the device, or 0 if unknown.

    It is the number of blocks, divided by the recorded number of blocks per multiprocessor. If the recorded number is
    less than 1, it has too few digits for this division, and the result is 0.
    """
    values = [args.blocks_per_sm for args in all_args]
    ratio = np.array([it if isinstance(it, int | float) and 1 <= it < MAX_ID else 0 for it in values], np.float64)
    return np.rint(np.divide(blocks, ratio, out=np.zeros(len(values)), where=ratio > 0)).astype(np.int64)
