"""Interned arguments of collectives and point-to-point messages: torch's ParamCommsDebugInfo, as Kineto writes it.

The operator `record_param_comms` has these arguments, and Kineto copies them to the kernels that the operator launches
(libkineto/src/output_json.cpp). The values are untrusted; invalid numbers are -1.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tb_bottleneck.sources.trace_event import Args
from tb_bottleneck.trace.columns.labels import clean
from tb_bottleneck.trace.table import Bools, Ints

MAX_RANK = 1 << 24
# A recording has a few thousand messages per step; a file with more different ones than this is malicious.
MAX_MESSAGES = 1 << 20
MAX_TEXT = 4096
# Comms Id is a hash of 64 bits (torch/csrc/profiler/util.cpp, saveNcclMeta).
_MAX_UNSIGNED = 1 << 64


class Message(NamedTuple):
    """The arguments of one collective or message. Empty text and -1 mean that a value was not recorded."""

    operation: str
    dtype: str = ""
    elements_in: int = -1
    elements_out: int = -1
    group: str = ""
    description: str = ""
    ranks: str = ""
    size: int = -1
    sequence: int = -1
    id: int = -1
    source: int = -1
    destination: int = -1
    split_in: str = ""
    split_out: str = ""


NO_MESSAGE = Message("")


class Messages(dict[Message, int]):
    """A dict: message -> row number. Row 0 is NO_MESSAGE. Looking up a new message adds a row.

    Beyond MAX_MESSAGES, a lookup of a new message returns 0 and increments `lost`."""

    def __init__(self) -> None:
        super().__init__({NO_MESSAGE: 0})
        self.lost = 0

    def __missing__(self, message: Message) -> int:
        if len(self) >= MAX_MESSAGES:
            self.lost += 1
            return 0
        self[message] = row = len(self)
        return row


def message_rows(messages: Messages, events: Sequence[Any], has_message: Bools) -> Ints:
    """Returns the row of each event's message in `messages`; 0 for events without a message.

    Only the events in the mask `has_message` are read. New messages are added to `messages`.
    """
    rows = np.zeros(len(events), np.int64)
    for row in np.flatnonzero(has_message).tolist():
        args = events[row].args
        if args is not None and args.operation is not None:
            rows[row] = messages[_message(args)]
    return rows


def _message(args: Args) -> Message:
    return Message(
        operation=_text(args.operation),
        dtype=_text(args.dtype),
        elements_in=_number(args.elements_in),
        elements_out=_number(args.elements_out),
        group=_text(args.group),
        description=_text(args.description),
        ranks=_text(args.ranks),
        size=_number(args.group_size, MAX_RANK),
        sequence=_number(args.collective_sequence),
        id=_number(args.message_id, _MAX_UNSIGNED),
        source=_number(args.source, MAX_RANK),
        destination=_number(args.destination, MAX_RANK),
        split_in=_text(args.split_in),
        split_out=_text(args.split_out),
    )


def _text(value: object) -> str:
    return clean(value)[:MAX_TEXT] if isinstance(value, str) else ""


def _number(value: object, limit: int = 1 << 62) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit else -1
