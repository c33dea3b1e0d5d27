"""Opens a run for a comparison: judges its traces together with what its monitor logged."""

from collections.abc import Sequence

from tb_bottleneck.comparison.runs.compared_run import ComparedRun, Progress, UnjudgedRun, judge_run
from tb_bottleneck.diagnosis.telemetry import Listener, judge_telemetry, unheard


def open_recordings(
    name: str, traces: Sequence[str], telemetry: Sequence[str] = (), progress: Progress | None = None
) -> ComparedRun | UnjudgedRun:
    """Reads and judges the traces and telemetry files of one run, each oldest first."""
    listeners = [Listener(file) for file in telemetry]
    reports = [unheard(listener, run=name) or judge_telemetry(listener, run=name) for listener in listeners]
    return judge_run(name, traces, progress, reports, [listener.telemetry.facts for listener in listeners])
