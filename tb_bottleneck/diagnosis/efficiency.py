"""The efficiency of a recording. An error here affects only its figures."""

import logging
from collections.abc import Callable

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.efficiency.trace_figures import trace_figures
from tb_bottleneck.measures.efficiency.utilisation import utilisation
from tb_bottleneck.measures.telemetry.efficiency import telemetry_figures
from tb_bottleneck.report.builders.efficiency import EfficiencyInputs

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


def _guarded(inputs: Callable[[], EfficiencyInputs]) -> EfficiencyInputs | None:
    try:
        return inputs()
    except MemoryError:
        raise
    except Exception:
        _log.exception("the efficiency of one recording could not be determined")
        return None
