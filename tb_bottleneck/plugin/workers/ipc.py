"""Frames on a pipe between the server and a worker process: one byte of kind, four bytes of length, the payload."""

import struct
from enum import Enum
from typing import IO

_HEAD = struct.Struct(">cI")


class FrameKind(Enum):
    """The content of a frame."""

    REQUEST = b"Q"  # to the worker: JSON {"path", "run"} of a recording, or a question (questions.py)
    PROGRESS = b"P"  # from the worker: a share done, see pack_share
    REPORT = b"R"  # from the worker: a serialized Report
    ANSWER = b"A"  # from the worker: the answer to a question
    REFUSAL = b"N"  # from the worker: a sentence; the question has no answer
    FAILURE = b"F"  # from the worker: JSON {"code", "detail"}


def write_frame(pipe: IO[bytes], kind: FrameKind, payload: bytes) -> None:
    """Writes one frame and flushes.

    Raises:
        OSError: the other end is closed.
    """
    pipe.write(_HEAD.pack(kind.value, len(payload)) + payload)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> tuple[FrameKind, bytes] | None:
    """Returns the next frame, or None if the other end was closed, even in the middle of a frame.

    Raises:
        ValueError: the bytes are not a frame.
    """
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    payload = pipe.read(length)
    return (FrameKind(kind), payload) if len(payload) == length else None


def pack_share(share: float) -> bytes:
    """Returns a share, 0 to 1, as a payload."""
    return struct.pack(">d", share)


def unpack_share(payload: bytes) -> float:
    """Returns the share that `pack_share` packed.

    Raises:
        struct.error: the payload is not a share.
    """
    return float(struct.unpack(">d", payload)[0])
