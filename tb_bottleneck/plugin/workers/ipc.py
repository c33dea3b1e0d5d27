"""What the server and its worker processes exchange: messages on a pipe, failures, and limits on resources."""

import os
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
from tb_bottleneck.schema.bottleneck_pb2 import Health, HealthReason, Report
from tb_bottleneck.schema.compile_log import SCHEMA
from tb_bottleneck.sources.logdir import RecordingFile

# Like every fix in a report, these are lines to copy: commands, or code of the training script.
FIXES = {
    "worker_not_started": "python -m tensorboard.main --logdir ...   # the Python that has tb_bottleneck installed",
    "worker_died": "touch FILE   # tries it again; fewer steps need less: schedule(wait=5, warmup=2, active=3)",
    "out_of_memory": "TB_BOTTLENECK_MEMORY_GIB=8 tensorboard --logdir ...   # or schedule(wait=5, warmup=2, active=3)",
    "timed_out": "TB_BOTTLENECK_SECONDS_PER_FILE=3600 tensorboard --logdir ...   # or record fewer steps",
    "analysis_failed": "tb-bottleneck diagnose FILE   # shows this defect of tb_bottleneck without TensorBoard",
}


@dataclass(frozen=True)
class WorkerFailure:
    """Why a worker process gives no result: `code` is a key of `FIXES`, `detail` says what was observed."""

    code: str
    detail: str


@dataclass(frozen=True)
class ListedReport:
    """The parts of a stored report that a list shows."""

    report: Report


@dataclass(frozen=True)
class Refusal:
    """The reason why a question has no answer, as a sentence. For example, the recording cannot be read, or a device is
    not known. The worker process itself did not fail."""

    sentence: str


def as_report(recording: RecordingFile, failure: WorkerFailure) -> Report:
    """Returns a report for a recording that could not be read. Its only reason is `failure`."""
    detail = failure.detail.encode("utf-8", "replace").decode()  # it may quote a path, which need not be Unicode
    reason = HealthReason(code=failure.code, detail=f"{recording.source}: {detail}.", fix=FIXES[failure.code])
    return Report(
        schema=SCHEMA,
        run=recording.run,
        source=recording.source,
        witness=recording.kind,
        evidence_source=recording.kind,
        health=Health(status="unreadable", reasons=[reason]),
    )


def _spare_cores() -> int:
    """Returns the number of cores that this process may use, minus one for the server and a training on the same
    machine; at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores - 1)


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

        The default of TB_BOTTLENECK_PROCESSES is 2 if at least two cores are spare, else 1.

        Raises:
            ValueError: a variable is not a positive number; the message names it."""
        return cls(
            processes=int(positive_setting(environment, "TB_BOTTLENECK_PROCESSES", min(2, _spare_cores()))) or 1,
            memory_bytes=memory_limit(environment),
            seconds_per_file=seconds_limit(environment),
        )


_HEAD = struct.Struct(">cI")


class FrameKind(Enum):
    """The kind of content of a frame, which is one message on the pipe between the server and a worker process."""

    REQUEST = b"Q"  # to the worker: JSON {"path", "run", "source", "for_list"}, or a question (questions.py)
    PROGRESS = b"P"  # from the worker: a share done, see pack_share
    REPORT = b"R"  # from the worker: a serialized Report
    LISTED = b"L"  # from the worker: a serialized Report with the parts that a list shows
    ANSWER = b"A"  # from the worker: the answer to a question
    REFUSAL = b"N"  # from the worker: a sentence; the question has no answer
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
