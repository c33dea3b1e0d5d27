"""Opens a run for a comparison: judges its traces together with what its monitor logged."""

from collections.abc import Sequence

from tb_bottleneck.comparison.runs.compared_run import ComparedRun, Progress, UnjudgedRun, judge_run
from tb_bottleneck.diagnosis.telemetry import TelemetryReader, judge_telemetry, read_all


def open_recordings(
    name: str, traces: Sequence[str], telemetry: Sequence[str] = (), progress: Progress | None = None
) -> ComparedRun | UnjudgedRun:
    """Reads and judges the traces and telemetry files of one run, each oldest first."""
    readers = [TelemetryReader(file) for file in telemetry]
    reports = [read_all(reader, run=name) or judge_telemetry(reader, run=name) for reader in readers]
    located = list(zip(telemetry, reports, strict=True))
    return judge_run(name, traces, progress, located, [reader.telemetry.facts for reader in readers])
