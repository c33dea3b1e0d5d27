"""What torch.compile compiled again during the run, as the monitor logged it."""

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.compile_log import compile_log, original_function

MAX_LISTED = 3


def recompilations_seen(recording: TelemetryRecording) -> Measure | Missing:
    """The functions that were compiled again, with the guards that failed (text)."""
    again = [entry for entry in compile_log(recording.facts).compilations if entry.reason]
    if not again:
        return Missing("no function was compiled again")
    names = dict.fromkeys(f"{original_function(entry.function)[0]}: {entry.reason}" for entry in again)
    return text_measure("; ".join(list(names)[:MAX_LISTED]), len(again))
