"""Typed structures of one trace event: the fields that are used, with every type that files contain.

The format is the Trace Event Format (JSON) as written by Kineto, libkineto/src/output_json.cpp.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

Number = int | float | str | None

# Beyond this many microseconds (101 days) float64 cannot distinguish nanoseconds: its spacing is 2^-9 us.
EXACT_FLOAT_US = 2.0**43

MEMORY_EVENT = "[memory]"
"""Name of the events that report allocations and frees."""

_NOTHING = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """Those arguments of an event that are used. torch before 1.12 writes `Input dims`; later versions write
    `Input Dims`.

    The fields are in the order in which Kineto writes the arguments: the decoder searches each key after the last one
    that it found.
    """

    sequence: Number = msgspec.field(default=None, name="Sequence number")
    concrete: msgspec.Raw = msgspec.field(default=_NOTHING, name="Concrete Inputs")
    types: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input type")
    dims: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input Dims")
    device: Number = None
    stream: Number = None
    correlation: Number = None
    bytes: Number = None
    blocks_per_sm: Number = msgspec.field(default=None, name="blocks per SM")
    grid: list[int | float] | str | None = None
    occupancy: Number = msgspec.field(default=None, name="est. achieved occupancy %")
    name: str | int | float | None = None  # of a thread or process, on metadata events
    dtype: Any = None  # of a collective's elements
    elements_in: Number = msgspec.field(default=None, name="In msg nelems")
    elements_out: Number = msgspec.field(default=None, name="Out msg nelems")
    operation: Any = msgspec.field(default=None, name="Collective name")
    group_size: Any = msgspec.field(default=None, name="Group size")
    split_in: Any = msgspec.field(default=None, name="In split size")
    split_out: Any = msgspec.field(default=None, name="Out split size")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    description: Any = msgspec.field(default=None, name="Process Group Description")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    source: Any = msgspec.field(default=None, name="Src Rank")
    destination: Any = msgspec.field(default=None, name="Dst Rank")
    collective_sequence: Any = msgspec.field(default=None, name="Seq")
    message_id: Any = msgspec.field(default=None, name="Comms Id")
    total_reserved: Number = msgspec.field(default=None, name="Total Reserved")  # this and the next five: of [memory]
    total_allocated: Number = msgspec.field(default=None, name="Total Allocated")
    allocated_bytes: Number = msgspec.field(default=None, name="Bytes")
    memory_device: Number = msgspec.field(default=None, name="Device Id")
    memory_device_type: Number = msgspec.field(default=None, name="Device Type")
    address: Number = msgspec.field(default=None, name="Addr")
    dims_old: msgspec.Raw = msgspec.field(default=_NOTHING, name="Input dims")
    counter: Number = msgspec.field(default=None, name="")  # the value of a counter


RAW_ARGUMENTS = ("Input Dims", "Input dims", "Input type", "Concrete Inputs")
"""Arguments that are kept as raw JSON text, because only a few rules need them, for a few events."""


class Event(msgspec.Struct, gc=False):
    """One event. `ts` and `dur` are microseconds. A `ts` written with a fraction is a float, or text if the lenient
    reader kept its digits (json_repair.py)."""

    ph: str = ""
    cat: str | None = ""
    name: str | int | float | None = ""
    pid: int | float | str | None = 0
    tid: int | float | str | None = 0
    ts: Number = None
    dur: float | str | None = 0.0
    args: Args | None = None
    id: Any = None  # of a flow


class ExactEvent(msgspec.Struct, gc=False):
    """One event with exact decimal times: float64 rounds absolute Unix microseconds to 0.25 µs."""

    ph: str = ""
    cat: str | None = ""
    name: str | int | float | None = ""
    pid: int | float | str | None = 0
    tid: int | float | str | None = 0
    ts: Decimal | None = None
    dur: Decimal | None = Decimal(0)
    args: Args | None = None
    id: Any = None


decode_event: Callable[[bytes], Event] = msgspec.json.Decoder(Event, strict=False).decode
decode_events: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[Event], strict=False).decode
decode_exact_events: Callable[[bytes], list[ExactEvent]] = msgspec.json.Decoder(list[ExactEvent], strict=False).decode
