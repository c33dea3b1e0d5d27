"""The parts of a run's wall time, from the monitor's first reading to the end, and the functions that torch.compile
recompiled.

Compilations come from torch's log, which the monitor recorded.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import INTERRUPTIONS
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.bottlenecks.interruption.telemetry_facts import interruption_of_long_steps
from tb_bottleneck.bottlenecks.launch.compile_log import Call, Compiled, compile_log, original_function
from tb_bottleneck.measures.user_code.places import MAX_PLACES, Place
from tb_bottleneck.telemetry.bounded_columns import Floats, Times
from tb_bottleneck.telemetry.windows import WARMUP_STEPS

MAX_BINS = 100
NS_PER_US = 1e3
LEAST_NS = 1_000_000
"""A part that takes less time (ns) than LEAST_NS in the whole run is a rounding error, and counts as training. Times
since 1970 are stored with a resolution of a quarter of a microsecond."""

LATEST_NS = 2**62
"""The time in the year 2116, in ns since 1970. Later times, from a damaged log, would not fit in 64 bits after a
multiplication."""


class Part(StrEnum):
    """A kind of time in a run. PAUSE is the time by which long steps exceed their neighbours, for no recorded reason.
    RECORDING is the additional time of steps of which a trace was recorded. UNRECORDED is time that no row of the
    telemetry contains."""

    START = "start"
    COMPILATION = "compilation"
    WARM_UP = "warm_up"
    EPOCH_START = "epoch_start"
    EVALUATION = "evaluation"
    CHECKPOINT = "checkpoint"
    LOGGING = "logging"
    COLLECTION = "garbage_collection"
    PAUSE = "pause"
    RECORDING = "recording"
    END = "end"
    UNRECORDED = "unrecorded"
    TRAINING = "training"


class RunTime(Record, frozen=True, eq=False):
    """The time (ns) of each part of a run. `ns` has the time by part; the times sum to `elapsed`, the time of the run.
    `begin` is the start of the run in ns on the recording's clock.

    `bins` has the time (ns) of each part in MAX_BINS equal intervals of the run. Its shape is (number of parts,
    MAX_BINS); the rows are in the order of Part.
    """

    begin: int
    elapsed: int
    ns: dict[Part, float]
    bins: Floats

    def share(self, part: Part) -> float:
        """Returns the share of `part` in the time of the run, from 0 to 1."""
        return self.ns[part] / self.elapsed


_ORDER = tuple(Part)
_ROW = {part: row for row, part in enumerate(_ORDER)}


def run_time(recording: TelemetryRecording) -> RunTime | None:
    """Returns the time of each part of the whole run; None without steps.

            first reading   first step                              last step   end
                | start        | warm-up | training, interruptions ...   | end    |

    In each row of steps (one step or the mean of several), the kinds of Part take their time one after the other from
    the time that is left, so that no time counts twice. The remaining time is training. The times of compilations come
    from torch's log. Steps of which the monitor recorded a trace count as training up to the time of a usual step;
    their time beyond that counts as recording.
    """
    telemetry, steps = recording.telemetry, recording.telemetry.steps
    if not len(steps):
        return None
    end = steps.end
    length = steps.column("wall").mean * steps.count
    first, last_step = int(end[0] - length[0]), int(end[-1])
    begin = min([first, *(int(rows.end[0]) for rows in telemetry.series.values() if len(rows))])
    last = max(telemetry.last, last_step) if telemetry.ended else last_step
    if last <= begin:
        return None
    # A row begins at its end minus its length, but not before the end of the previous row. Time between the two rows
    # was not recorded.
    begun = np.maximum(end - length, np.concatenate(([first], end[:-1]))).astype(np.int64)
    parts = _parts_of_rows(recording, begun)
    edges = np.linspace(begin, last, MAX_BINS + 1).astype(np.int64)
    bins = np.array([_spread(begun, end, parts.get(part, np.zeros(len(end))), edges) for part in _ORDER])
    compiled = _compiled(recording)
    for part, low, high in ((Part.START, begin, first), (Part.END, last_step, last)):
        lower, upper = np.clip(edges[:-1], low, high), np.clip(edges[1:], low, high)
        inside = compiled.covered(lower, upper)
        bins[_ROW[part]] += upper - lower - inside
        bins[_ROW[Part.COMPILATION]] += inside
    bins[_ROW[Part.UNRECORDED]] += np.maximum(np.diff(edges) - bins.sum(axis=0), 0.0)
    rounding = bins.sum(axis=1) < LEAST_NS
    bins[_ROW[Part.TRAINING]] += bins[rounding].sum(axis=0)
    bins[rounding] = 0.0
    totals = bins.sum(axis=1)
    scale = (last - begin) / totals.sum()  # rounding
    return RunTime(begin, last - begin, {part: float(totals[_ROW[part]] * scale) for part in _ORDER}, bins * scale)


def _parts_of_rows(recording: TelemetryRecording, begun: Times) -> dict[Part, Floats]:
    """Returns for each part an array with its time (ns) in each row of steps. `begun` has the start of each row in ns.
    The parts sum to the length of the row."""
    steps = recording.telemetry.steps
    count = steps.count
    number = np.nan_to_num(steps.column("number").mean)
    usual = _usual_step(recording)
    left = (steps.end - begun).astype(np.float64)
    found: dict[Part, Floats] = {}

    def take(part: Part, wanted: Floats) -> None:
        taken = np.clip(np.nan_to_num(wanted), 0.0, left)
        found[part] = found.get(part, np.zeros(len(left))) + taken
        left[:] -= taken

    take(Part.COMPILATION, _compiled(recording).covered(begun, steps.end).astype(np.float64))
    for part in (Part.EVALUATION, Part.CHECKPOINT, Part.LOGGING, Part.COLLECTION):
        take(part, steps.column(part).mean * count)
    take(Part.EPOCH_START, steps.column("epoch_start").mean * count)
    beyond = np.maximum(left - usual * count, 0.0)
    profiled = np.nan_to_num(steps.column("profiled").high) > 0
    take(Part.RECORDING, np.where(profiled, beyond, 0.0))
    take(Part.WARM_UP, np.where(number < number[0] + WARMUP_STEPS, beyond, 0.0))
    owner = interruption_of_long_steps(recording)
    pauses = np.minimum(_excess_of(recording, number.astype(np.int64)), np.maximum(left - usual * count, 0.0))
    take(Part(owner.text) if isinstance(owner, Measure) else Part.PAUSE, pauses)
    found[Part.TRAINING] = left
    return found


def _excess_of(recording: TelemetryRecording, number: Times) -> Floats:
    """Returns for each row of steps the time in ns by which its long step exceeds the usual step; 0 if none is long.
    `number` has the mean step number of each row."""
    excess = recording.excess
    ns = dict(zip(excess.number.tolist(), excess.ns.tolist(), strict=True))
    return np.array([ns.get(each, 0.0) for each in number.tolist()], np.float64)


def _usual_step(recording: TelemetryRecording) -> float:
    """Returns the median time of a judged step without interruptions and pauses, in ns; 0 if no step was judged."""
    windows = recording.windows
    number, _, wall = windows.highest("wall")
    if not len(wall):
        return 0.0
    count = windows.counts_of_steps
    apart = sum(
        (np.nan_to_num(windows.highest(name)[2]) for name in INTERRUPTIONS), _excess_of(recording, number) / count
    )
    return float(percentile(np.maximum(wall - apart, 0.0), 50, count))


def _compiled(recording: TelemetryRecording) -> Spans:
    """Returns the time in which torch compiles."""
    return _spans(compile_log(recording.facts).compilations)


def _spans(entries: Sequence[Compiled]) -> Spans:
    """Returns the time in which the compilations `entries` run, in ns since 1970."""
    begin = np.array([entry.start_us for entry in entries]) * NS_PER_US
    end = begin + np.array([entry.duration_us for entry in entries]) * NS_PER_US
    return union(*(np.clip(times, 0, LATEST_NS).astype(np.int64) for times in (begin, end)))


def _spread(begin: Times, end: Times, time: Floats, edges: Times) -> Floats:
    """Returns the time in each of the bins between `edges`. The time of row i, time[i], is spread evenly over the
    interval from begin[i] to end[i]. All arguments and the result are in ns."""
    total = np.zeros(len(edges) - 1)
    first = np.clip(np.searchsorted(edges, begin, side="right") - 1, 0, len(total) - 1)
    final = np.clip(np.searchsorted(edges, end, side="left") - 1, 0, len(total) - 1)
    within = first == final
    np.add.at(total, first[within], time[within])
    for row in np.flatnonzero(~within).tolist():  # at most one such row per edge
        own = np.arange(first[row], final[row] + 1)
        covered = np.minimum(edges[own + 1], end[row]) - np.maximum(edges[own], begin[row])
        total[own] += covered / (end[row] - begin[row]) * time[row]
    return total


NOTHING_AGAIN = Missing("no function was compiled again")
MAX_LISTED = 3


def recompiling_time(recording: TelemetryRecording) -> Measure | Missing:
    """Time per judged step in which torch.compile compiles functions again (ns)."""
    again = [entry for entry, _ in compile_log(recording.facts).recompilations()]
    if not again or not len(recording.steps):
        return NOTHING_AGAIN
    inside = _spans(again).covered(*recording.windows.spans_of_steps).sum()
    return Measure(float(inside) / len(recording.steps), "ns", "step", len(again), EVIDENCE_SOURCE)


def compiled_again_share(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which functions are compiled again (share of the time of the run, including its start, but without the
    time of recording traces)."""
    again = [entry for entry, _ in compile_log(recording.facts).recompilations()]
    return _share_of_run(recording, again, NOTHING_AGAIN)


def share_in_compilation(recording: TelemetryRecording) -> Measure | Missing:
    """Time in which functions are compiled for the first time or again (share of the time of the run, including its
    start, but without the time of recording traces)."""
    entries = compile_log(recording.facts).compilations
    return _share_of_run(recording, list(entries), Missing("no compilation was recorded"))


def compilations_counted(recording: TelemetryRecording) -> Measure | Missing:
    """The number of compilations, including recompilations (count)."""
    count = len(compile_log(recording.facts).compilations)
    if not count:
        return Missing("no compilation was recorded")
    return Measure(float(count), "count", "", count, EVIDENCE_SOURCE)


def recompilations_seen(recording: TelemetryRecording) -> Measure | Missing:
    """The functions that were compiled again, with the guards that failed, as text."""
    again = [named for _, named in compile_log(recording.facts).recompilations()]
    if not again:
        return NOTHING_AGAIN
    names = dict.fromkeys(f"{original_function(named.function)[0]}: {named.reason}" for named in again)
    return text_measure("; ".join(list(names)[:MAX_LISTED]), len(again))


def recompiled_places(recording: TelemetryRecording) -> tuple[Place, ...]:
    """Returns the lines of the program whose calls made torch recompile, or the recompiled functions if these lines are
    not known. `share` of each place is its share of the recompilation time; the largest comes first."""
    log = compile_log(recording.facts)
    times: Counter[tuple[str, int, str, bool]] = Counter()
    for entry, named in log.recompilations():
        call = log.call_of(named)
        place = call or Call(named.file, named.line, original_function(named.function)[0])
        times[place.file, place.line, place.function, call is not None] += int(entry.duration_us)
    total = max(sum(times.values()), 1)
    return tuple(
        Place(us / total, file, line, function, exact=exact)
        for (file, line, function, exact), us in times.most_common(MAX_PLACES)
    )


def _share_of_run(recording: TelemetryRecording, entries: list[Compiled], missing: Missing) -> Measure | Missing:
    """Returns the time of the compilations `entries` as a share of the run without the time of recording traces.
    Returns `missing` if there are no entries."""
    account = run_time(recording) if entries else None
    if account is None:
        return missing
    inside = int(_spans(entries).covered([account.begin], [account.begin + account.elapsed])[0])
    # Without the monitor, the run would not record traces, but it would compile for the same time.
    share = inside / max(account.elapsed - account.ns[Part.RECORDING], inside)
    return Measure(share, "share", "", len(entries), EVIDENCE_SOURCE)
