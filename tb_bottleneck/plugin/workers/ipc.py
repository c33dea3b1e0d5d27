"""Messages over a pipe between the server and a worker process: one byte of kind, four of length, the payload."""

import struct
from enum import Enum
from typing import IO

_HEAD = struct.Struct(">cI")


class FrameKind(Enum):
    """What a frame holds."""

    JOB = b"J"  # to the worker: JSON {"path", "run"}, or {"question"}
    PROGRESS = b"P"  # from the worker: a share done, see pack_share
    REPORT = b"R"  # from the worker: a serialized Report
    ANSWER = b"A"  # from the worker: what a question was answered with
    FAILURE = b"F"  # from the worker: JSON {"code", "detail"}


def write_frame(pipe: IO[bytes], kind: FrameKind, payload: bytes) -> None:
    """Writes one frame and flushes.

    Raises:
        OSError: nobody reads the other end any more.
    """
    pipe.write(_HEAD.pack(kind.value, len(payload)) + payload)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> tuple[FrameKind, bytes] | None:
    """The next frame, or None where the other end is gone, be it in the middle of a frame.

    Raises:
        ValueError: the bytes are no frame.
    """
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    payload = pipe.read(length)
    return (FrameKind(kind), payload) if len(payload) == length else None


def pack_share(share: float) -> bytes:
    """A share, 0 to 1, as a payload."""
    return struct.pack(">d", share)


def unpack_share(payload: bytes) -> float:
    """The share of `pack_share`.

    Raises:
        struct.error: the payload is no share.
    """
    return float(struct.unpack(">d", payload)[0])
