"""The efficiency of a recording, and what a run without a problem could still gain. An error here affects only them."""

import logging
from collections.abc import Callable
from typing import TypeVar

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.efficiency.trace_figures import trace_figures
from tb_bottleneck.measures.efficiency.utilisation import utilisation
from tb_bottleneck.measures.telemetry.efficiency import telemetry_figures
from tb_bottleneck.report.efficiency.figures import EfficiencyInputs
from tb_bottleneck.report.efficiency.headroom import telemetry_headroom, trace_headroom
from tb_bottleneck.schema import bottleneck_pb2 as pb

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


def trace_efficiency(recording: Recording) -> EfficiencyInputs | None:
    """Returns the figures of a trace."""

    def inputs() -> EfficiencyInputs:
        used = utilisation(recording)
        return EfficiencyInputs(trace_figures(recording), used.types, used.bf16_peak)

    return _guarded(inputs)


def telemetry_efficiency(recording: TelemetryRecording) -> EfficiencyInputs | None:
    """Returns the figures of telemetry."""
    return _guarded(lambda: EfficiencyInputs(telemetry_figures(recording)))


def add_trace_headroom(report: pb.Report, recording: Recording) -> None:
    """Adds what remains for a trace."""
    report.headroom.extend(_guarded(lambda: trace_headroom(recording, report)) or [])


def add_telemetry_headroom(report: pb.Report) -> None:
    """Adds what remains for telemetry."""
    report.headroom.extend(_guarded(lambda: telemetry_headroom(report)) or [])


def _guarded(result: Callable[[], Result]) -> Result | None:
    try:
        return result()
    except MemoryError:
        raise
    except Exception:
        _log.exception("the efficiency of one recording could not be determined")
        return None
