"""What a program and its worker processes exchange: messages on a pipe, failures, and limits on resources."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import IO

from tb_bottleneck.base.limited_process import (
    MEMORY_BYTES,
    SECONDS_PER_FILE,
    memory_limit,
    positive_setting,
    seconds_limit,
)
from tb_bottleneck.base.machine import usable_cores
from tb_bottleneck.schema.bottleneck_pb2 import Health, HealthReason, Report
from tb_bottleneck.version import SCHEMA

# Like every fix in a report, these are lines to copy: commands, or code of the training script.
FIXES = {
    "worker_not_started": "python -m tensorboard.main --logdir ...   # the Python that has tb_bottleneck installed",
    "worker_died": "touch FILE   # tries it again; fewer steps need less: schedule(wait=5, warmup=2, active=3)",
    "out_of_memory": "schedule(wait=5, warmup=2, active=3)   # or set TB_BOTTLENECK_MEMORY_GIB to 8 or more",
    "timed_out": "schedule(wait=5, warmup=2, active=3)   # or set TB_BOTTLENECK_SECONDS_PER_FILE to 3600",
    "analysis_failed": "tb-bottleneck diagnose FILE   # shows this defect of tb_bottleneck without TensorBoard",
}


@dataclass(frozen=True)
class WorkerFailure:
    """Why a worker process gives no result: `code` is a key of `FIXES`, `detail` says what was observed."""

    code: str
    detail: str


@dataclass(frozen=True)
class Refusal:
    """The reason why a request has no answer, as a sentence. For example, the recording cannot be read, or a device is
    not known. The worker process itself did not fail."""

    sentence: str


def failure_report(run: str, source: str, evidence_source: str, failure: WorkerFailure) -> Report:
    """Returns a report for a recording that could not be read. Its only reason is `failure`."""
    detail = failure.detail.encode("utf-8", "replace").decode()  # it may quote a path, which need not be Unicode
    reason = HealthReason(code=failure.code, detail=f"{source}: {detail}.", fix=FIXES[failure.code])
    return Report(
        schema=SCHEMA,
        run=run,
        source=source,
        witness=evidence_source,
        evidence_source=evidence_source,
        health=Health(status="unreadable", reasons=[reason]),
    )


@dataclass(frozen=True)
class WorkerLimits:
    """Limits on the resources of the worker processes. Environment variables can change them, see
    `from_environment`."""

    processes: int = 1  # at a time
    memory_bytes: int = MEMORY_BYTES  # address space of one process; a trace of 284 MB needs at most about 1.4 GB
    seconds_per_file: float = SECONDS_PER_FILE  # a file system may hang indefinitely
    idle_seconds: float = 60.0  # a process without work ends after this long
    abandoned_seconds: float = 120.0  # without a request for this long, nothing is analysed; the tab asks every 30 s
    retry_seconds: float = 5.0  # a file that was still being written is read again after this long

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "WorkerLimits":
        """Returns the limits that the variables TB_BOTTLENECK_PROCESSES, TB_BOTTLENECK_MEMORY_GIB and
        TB_BOTTLENECK_SECONDS_PER_FILE in `environment` set. All other limits have their defaults.

        The default of TB_BOTTLENECK_PROCESSES is 2 if at least two cores are spare, else 1: one core is for the
        server, or for a training on the same machine.

        Raises:
            ValueError: a variable is not a positive number; the message names it."""
        processes = positive_setting(environment, "TB_BOTTLENECK_PROCESSES", min(2, max(1, usable_cores() - 1)))
        return cls(
            processes=int(processes) or 1,
            memory_bytes=memory_limit(environment),
            seconds_per_file=seconds_limit(environment),
        )


_HEAD = struct.Struct(">cI")


class FrameKind(Enum):
    """The kind of content of a frame, which is one message on the pipe between a program and its worker process."""

    REQUEST = b"Q"  # to the worker
    PROGRESS = b"P"  # from the worker: a share done, see pack_share
    ANSWER = b"A"  # from the worker: the answer to the request
    REFUSAL = b"N"  # from the worker: a sentence; the request has no answer
    FAILURE = b"F"  # from the worker: JSON {"code", "detail"}


def write_frame(pipe: IO[bytes], kind: FrameKind, payload: bytes) -> None:
    """Writes one frame to `pipe` and flushes. A frame is one byte for `kind`, four bytes for the length, and the
    payload.

    Raises:
        OSError: the other end is closed."""
    pipe.write(_HEAD.pack(kind.value, len(payload)) + payload)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> tuple[FrameKind, bytes] | None:
    """Returns the next frame of `pipe` as (kind, payload). Returns None if the other end was closed, even in the middle
    of a frame.

    Raises:
        ValueError: the bytes are not a frame."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    payload = pipe.read(length)
    return (FrameKind(kind), payload) if len(payload) == length else None


def pack_share(share: float) -> bytes:
    """Returns the bytes of a frame's payload for `share`, the completed fraction (0 to 1) of the work."""
    return struct.pack(">d", share)


def unpack_share(payload: bytes) -> float:
    """Returns the fraction (0 to 1) that `pack_share` packed into `payload`.

    Raises:
        struct.error: the payload is not a fraction."""
    return float(struct.unpack(">d", payload)[0])
