"""The analysis that a worker process of the server runs for a trace, telemetry, or a snapshot of an allocator."""

from collections.abc import Callable

from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.diagnosis.trace_or_snapshot import diagnose_recording
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.telemetry.event_files import is_event_file


def diagnose_any(path: str, *, run: str = ".", progress: Callable[[int, int], None] | None = None) -> Report:
    """Reads the file at `path` and returns its report. Raises only MemoryError."""
    diagnose = diagnose_telemetry if is_event_file(path) else diagnose_recording
    return diagnose(path, run=run, progress=progress)
