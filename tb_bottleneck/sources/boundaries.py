"""Where the list of events begins and ends in a trace, and where it can be cut between two events."""

import re

from tb_bottleneck.sources.lenient import FIRST_KEYS

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LIST_FORM = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + FIRST_KEYS.encode() + rb")")
END_AFTER_EVENT = re.compile(rb"\}\s*\]\s*\}?\s*\Z")
# The last boundary of a block is first searched in this many bytes at its end.
_END_OF_BLOCK = 1 << 12
# Bytes that are searched again with the next block: a boundary with its white space may cross both.
OVERLAP = 1 << 10


def may_be_json(head: bytes) -> bool:
    """Returns True if the first bytes can start an object, after an optional byte order mark and white space."""
    start = head[:OVERLAP].removeprefix(_BYTE_ORDER_MARK).lstrip()
    return start.startswith(b"{") or (len(head) < OVERLAP and _BYTE_ORDER_MARK.startswith(start))


def last_boundary(data: bytes, begin: int) -> re.Match[bytes] | None:
    """Returns the last boundary between two events after `begin`."""
    for start in (max(len(data) - _END_OF_BLOCK, begin), begin):
        if boundaries := list(BOUNDARY.finditer(data, start)):
            return boundaries[-1]
    return None
