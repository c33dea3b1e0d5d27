"""Diagnosis of a file by its kind: a trace, or a snapshot of the allocator. Event files have a reader of their own."""

from collections.abc import Callable

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.snapshot import SNAPSHOT_ENDINGS


def diagnose_file(path: str, *, run: str = ".", progress: Callable[[int, int], None] | None = None) -> pb.Report:
    """Returns the report of the file. Raises only MemoryError."""
    if path.endswith(SNAPSHOT_ENDINGS):
        from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot  # few logdirs need its imports

        return diagnose_snapshot(path, run=run)
    from tb_bottleneck.diagnosis.trace import diagnose

    return diagnose(path, run=run, progress=progress)
