"""Interned arguments of collectives and point-to-point messages.

The arguments are torch's ParamCommsDebugInfo in the form that Kineto writes. The operator `record_param_comms` has
these arguments, and Kineto copies them to the kernels that the operator launches (libkineto/src/output_json.cpp). The
values are untrusted. Invalid numbers become -1.
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
    """The arguments of one collective or point-to-point message. Empty texts and -1 stand for values not recorded."""

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
    """A dict from message to row number. Row 0 is NO_MESSAGE. Looking up a new message adds a row.

    If there are already MAX_MESSAGES rows, a lookup of a new message returns 0 and increments `lost`.
    """

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
    """Returns for each event the row of its message in `messages`, or 0 if the event has no message.

    Only the events for which the mask `has_message` is True are read. New messages are added to `messages`.
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
