"""Reports of recordings that several files of tests read: each is made once in a run."""

from functools import cache
from pathlib import Path

from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report_of(path: str | Path) -> pb.Report:
    """Returns the report of a trace or of an event file, which the caller may change."""
    report = pb.Report()
    report.CopyFrom(_made(str(path)))
    return report


@cache
def _made(path: str) -> pb.Report:
    return (diagnose_telemetry if ".tfevents." in path else diagnose)(path)
