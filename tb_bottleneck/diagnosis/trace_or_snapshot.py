"""Diagnosis of a recording that is not telemetry: a trace, or a snapshot of an allocator."""

from collections.abc import Callable

from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.snapshot import is_snapshot


def diagnose_recording(path: str, *, run: str = ".", progress: Callable[[int, int], None] | None = None) -> pb.Report:
    """Reads the trace or allocator snapshot at `path` and returns its report. Raises only MemoryError.

    `run` is the name of the run in the report. `progress` is called with the bytes read and the bytes in total, for a
    trace only.
    """
    return diagnose_snapshot(path, run=run) if is_snapshot(path) else diagnose(path, run=run, progress=progress)
