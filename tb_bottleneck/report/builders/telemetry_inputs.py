"""The inputs of a report that come from telemetry: origin, window, confidence and situation."""

from collections.abc import Sequence

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry.device import own_work
from tb_bottleneck.measures.telemetry.input_pipeline import loader_wait_time
from tb_bottleneck.measures.telemetry.recoverable import recoverable_by_window
from tb_bottleneck.measures.telemetry.step_phases import timed_phase_count
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.regimes import compute, input
from tb_bottleneck.regimes.judge import Conclusion
from tb_bottleneck.report.builders.confidence import LARGE_UNEXPLAINED_SHARE
from tb_bottleneck.report.builders.provenance import MAX_DEVICE_NAME, WINDOWS, Origin, ReportedDevice, revision_of
from tb_bottleneck.report.builders.situation import beside_problem, rest_of
from tb_bottleneck.report.builders.window import Window, longest_of_neighbours, spread_of

# For more than low confidence: traceml's minimum (diagnostics/step_time/policy.py).
MIN_TELEMETRY_STEPS = 20
_INT32 = 1 << 31


def telemetry_origin(recording: TelemetryRecording) -> Origin:
    """Returns the origin of telemetry, from the context of the run."""
    rank, world_size = recording.fact("rank"), recording.fact("world_size")
    name, kind = recording.facts.get("device_name"), recording.facts.get("device_kind")
    known = kind if kind in ("cuda", "rocm", "cpu", "xpu") else "cuda" if recording.on_device else "cpu"
    kind = "cuda" if recording.on_device and known == "cpu" else known
    return Origin(
        rank=int(rank) if rank is not None and 0 <= rank < _INT32 else None,
        world_size=int(world_size) if world_size is not None and 0 < world_size < _INT32 else None,
        device=ReportedDevice(
            name=name[:MAX_DEVICE_NAME] if isinstance(name, str) and known == kind else "",
            kind=kind,
            count=max(len(recording.telemetry.devices), 1),
        ),
        revision=revision_of(recording.facts),
        on_windows=recording.facts.get("os") == WINDOWS,
    )


def telemetry_window(recording: TelemetryRecording) -> Window:
    """Returns the judged window of telemetry."""
    grid, steps = recording.windows.grid, len(recording.steps)
    _, highest, mean = recording.windows.highest("wall")
    return Window(
        steps=steps,
        basis="step_clock" if steps else "whole",
        begin=int(grid.begin),
        end=int(grid.edges[-1]),
        spread=spread_of(mean, recording.windows.counts_of_steps) if len(mean) else None,
        step_times=longest_of_neighbours(highest) if len(mean) else (),
    )


def telemetry_confidence(recording: TelemetryRecording, defects: Sequence[Defect], conclusion: Conclusion) -> str:
    """Returns medium or low: telemetry sees steps only from outside.

    It is low with few steps, with any defect, with much unexplained time, and for the device's own work if no counters
    show its limit.
    """
    limit_known = conclusion.regime not in DEVICE_REGIMES or recording.bounds.counters
    unexplained = recording.mean(recoverable_by_window(recording)[Regime.UNEXPLAINED], "share", "no window is known")
    in_doubt = isinstance(unexplained, Missing) or unexplained.value > LARGE_UNEXPLAINED_SHARE
    in_doubt = conclusion.regime == Regime.UNEXPLAINED or (in_doubt and conclusion.regime != Regime.GPU_UNUSED)
    enough = len(recording.steps) >= MIN_TELEMETRY_STEPS
    return "medium" if enough and limit_known and not in_doubt and not defects else "low"


def telemetry_situation(measures: Measures[TelemetryRecording], conclusion: Conclusion) -> str:
    """Returns the situation of a run that telemetry judges; empty if its phases or its device's work are not known."""
    known = isinstance(measures(own_work), Measure) and isinstance(measures(timed_phase_count), Measure)
    if conclusion.regime in (Regime.UNEXPLAINED, Regime.GPU_UNUSED) or not known:
        return ""
    account = measures.account
    waits = isinstance(measures(loader_wait_time), Measure)
    data = "unseen" if not waits else "complex" if account.share(Regime.INPUT) >= input.FIRES_AT else "simple"
    rest = rest_of(account)
    is_large = measures.value(own_work, 0.0) >= compute.FIRES_AT * rest > 0
    return beside_problem(is_large, data, measures.on_device)
