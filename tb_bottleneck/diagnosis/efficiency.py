"""The efficiency of a recording, and what a run without a problem could still gain. An error here affects only them."""

import logging
from collections.abc import Callable
from typing import TypeVar

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.measures.efficiency.trace_figures import trace_figures
from tb_bottleneck.measures.efficiency.utilisation import utilisation
from tb_bottleneck.report.efficiency.figures import EfficiencyInputs
from tb_bottleneck.schema import bottleneck_pb2 as pb

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


def trace_efficiency(recording: Recording) -> EfficiencyInputs | None:
    """Returns the figures of a trace."""

    def inputs() -> EfficiencyInputs:
        used = utilisation(recording)
        return EfficiencyInputs(trace_figures(recording), used.types, used.bf16_peak)

    return guarded(inputs)


def add_headroom(report: pb.Report, recording: Recording | None = None) -> None:
    """Adds what remains to a report without a problem; `recording` is that of a trace."""
    if report.verdict.severity != "none":
        return
    from tb_bottleneck.report.efficiency.headroom import headroom_of  # few reports need its imports

    report.headroom.extend(guarded(lambda: headroom_of(report, recording)) or [])


def guarded(result: Callable[[], Result]) -> Result | None:
    """Returns the result, None if an error occurs. Raises only MemoryError."""
    try:
        return result()
    except MemoryError:
        raise
    except Exception:
        _log.exception("the efficiency of one recording could not be determined")
        return None
