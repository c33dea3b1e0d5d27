"""What torch.compile compiled again during the run, as the monitor logged it."""

from collections import Counter

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.intervals import union
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.compile_log import Compiled, compile_log, original_function
from tb_bottleneck.measures.telemetry.run_time import run_time
from tb_bottleneck.measures.user_code.places import MAX_PLACES, Place

NOTHING_AGAIN = Missing("no function was compiled again")
MAX_LISTED = 3
NS_PER_US = 1e3


def recompiling_time(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which torch.compile compiles functions again in the judged steps, per step (ns)."""
    again = _compiled_again(recording)
    if not again or not len(recording.steps):
        return NOTHING_AGAIN
    first, *_, last = recording.windows.grid.edges.tolist()
    begin = [min(max(entry.start_us * NS_PER_US, first), last) for entry in again]
    end = [min(max((entry.start_us + entry.duration_us) * NS_PER_US, first), last) for entry in again]
    inside = union(np.array(begin, np.int64), np.array(end, np.int64)).total()
    return Measure(float(inside) / len(recording.steps), "ns", "step", len(again), EVIDENCE_SOURCE)


def compiled_again_share(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which functions are compiled again (share of the wall time of the run, its start included)."""
    return _share_of_run(recording, _compiled_again(recording), NOTHING_AGAIN)


def share_in_compilation(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which functions are compiled, for the first time or again (share of the wall time of the run)."""
    entries = compile_log(recording.facts).compilations
    return _share_of_run(recording, list(entries), Missing("no compilation was recorded"))


def compilations_counted(recording: TelemetryRecording) -> Measure | Missing:
    """The number of compilations."""
    count = len(compile_log(recording.facts).compilations)
    if not count:
        return Missing("no compilation was recorded")
    return Measure(float(count), "count", "", count, EVIDENCE_SOURCE)


def recompilations_seen(recording: TelemetryRecording) -> Measure | Missing:
    """The functions that were compiled again, with the guards that failed (text)."""
    again = _compiled_again(recording)
    if not again:
        return NOTHING_AGAIN
    names = dict.fromkeys(f"{original_function(entry.function)[0]}: {entry.reason}" for entry in again)
    return text_measure("; ".join(list(names)[:MAX_LISTED]), len(again))


def recompiled_places(recording: TelemetryRecording) -> tuple[Place, ...]:
    """Returns the functions that were compiled again, with the shares of the time that this took."""
    times: Counter[tuple[str, int, str]] = Counter()
    for entry in _compiled_again(recording):
        times[entry.file, entry.line, original_function(entry.function)[0]] += int(entry.duration_us)
    total = max(sum(times.values()), 1)
    return tuple(
        Place(us / total, file, line, function) for (file, line, function), us in times.most_common(MAX_PLACES)
    )


def _share_of_run(recording: TelemetryRecording, entries: list[Compiled], missing: Missing) -> Measure | Missing:
    account = run_time(recording)
    if account is None or not entries:
        return missing
    begin = np.array([entry.start_us * NS_PER_US for entry in entries], np.int64)
    spans = union(begin, begin + np.array([entry.duration_us * NS_PER_US for entry in entries], np.int64))
    inside = int(spans.covered([account.begin], [account.begin + account.elapsed])[0])
    return Measure(inside / account.elapsed, "share", "", len(entries), EVIDENCE_SOURCE)


def _compiled_again(recording: TelemetryRecording) -> list[Compiled]:
    return [entry for entry in compile_log(recording.facts).compilations if entry.reason]
