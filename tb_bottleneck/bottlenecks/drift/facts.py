"""Measures of steps that become longer over the run or within each epoch, and of the parts of the step and the memory
that grow too.

The time of a step excludes interruptions, the starts of epochs, and the time in which the main thread waited for a core
that another program used: these times have separate causes, and do not repeat evenly. A factor by which all timed parts
of the step grow is also excluded, because such a factor shows that the machine became slower, through its clocks or
other programs.

The run is divided into twelve periods and into thirds:

    thirds of the run, by time     first         second         last
    medians of twelve periods      . . . .       . . . .       . . . .
"""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import EVIDENCE_SOURCE, TelemetryRecording
from tb_bottleneck.attribution.telemetry.window_signals import INTERRUPTIONS, PHASES
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.base.units import bytes_text, duration_text
from tb_bottleneck.bottlenecks.recoverable import core_wait_by_window
from tb_bottleneck.telemetry.bounded_columns import Floats, Times

GROWS = 1.3
"""Factor from which growth is reported, and from which the monitor records again: step time in the last third of the
run / step time in the first third."""
PARTS = 12
MIN_STEPS_PER_PART = 5
RISING = 0.6
"""The step times rise if Kendall's rank correlation of the number of a period and its step time is at least RISING.
Twelve periods without a trend reach this correlation in one of 200 runs (tau = 0.6, n = 12: p = 0.006, Kendall
1938)."""
MIN_SIDE = 2
"""Fewest periods before and after a jump of the step time: a single period may be slow by chance."""
AT_ONCE = 0.6
"""If at least this share of the growth is between two neighbouring periods, the growth is a jump."""
SAME_GROWTH = 1.15
"""Values that grow by a smaller factor are not reported as growing."""
OF_GROWTH = 0.1
MIN_PART, MIN_PARTS, MIN_OPTIMIZER_NS = 0.01, 3, 20_000
"""The machine is taken as the cause of a common growth only if at least MIN_PARTS timed parts of the step (such as
forward or copies) each take at least the share MIN_PART of the step. One of them must be the optimizer, whose work is
the same in each step; MIN_OPTIMIZER_NS are enough for it. All are choices."""
MIN_EPOCHS, MIN_EPOCH_ROWS, MOST_EPOCHS = 3, 12, 0.8
_TIMES = {
    "loader_wait": "wait for a batch",
    "transfer": "copies",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "outside": "time outside of these",
}
_STEADY = Missing("steps do not become longer over the run")
_SERIES = {"process_memory": "memory of the process", "memory_used": "device memory"}


class Drift(Record, frozen=True, eq=False):
    """A growth of the step time. `first` and `last` are the median step times (ns) in the first and the last third of
    the run. `jump` is the number of the step at which the time jumps, or None if the time grows gradually."""

    first: float
    last: float
    jump: int | None
    beyond: float
    """Share of the judged time by which steps are longer than the median of the first twelfth of the steps."""

    @property
    def factor(self) -> float:
        """Median step time in the last third / in the first third."""
        return self.last / self.first


def drift_of(recording: TelemetryRecording) -> Drift | None:
    """Returns the growth of the step time over the run. Returns None if there is no growth, if there are too few steps,
    or if the steps grow only because the batches become larger."""
    times, count, number, wall = _steps(recording)
    if len(times) < PARTS:
        return None
    part = _parts(wall * count, PARTS)
    if np.bincount(part, count, PARTS).min() < MIN_STEPS_PER_PART:
        return None
    medians = np.array([percentile(times[part == at], 50, count[part == at]) for at in range(PARTS)])
    third = _parts(wall * count, 3)
    first, last = (percentile(times[third == at], 50, count[third == at]) for at in (0, 2))
    if first <= 0 or last < GROWS * first * _common_growth(recording) or not _rises(medians):
        return None
    samples = _thirds(recording, "samples")
    if samples is not None and last * samples[0] < GROWS * first * samples[1]:
        return None
    rise = np.diff(medians)
    at = int(rise.argmax())
    jump = int(number[part == at + 1][0]) if rise[at] >= AT_ONCE * (medians[-1] - medians[0]) else None
    begins = _parts(count, PARTS) == 0
    begun = min(percentile(times[begins], 50, count[begins]), first)
    beyond = float((np.maximum(times - begun, 0.0) * count).sum() / max((wall * count).sum(), 1.0))
    return Drift(first=first, last=last, jump=jump, beyond=min(beyond, 1.0))


def growth_cost(recording: TelemetryRecording) -> Measure | Missing:
    """Time by which steps exceed the median step of the first twelfth of all steps (share of the judged time)."""
    drift = drift_of(recording)
    if drift is None:
        return _STEADY
    return Measure(drift.beyond, "share", "", len(recording.steps), EVIDENCE_SOURCE)


def step_time_over_run(recording: TelemetryRecording) -> Measure | Missing:
    """Median step time in the first and the last third of the run, as text."""
    drift = drift_of(recording)
    if drift is None:
        return _STEADY
    text = f"{duration_text(drift.first)} to {duration_text(drift.last)}, {drift.factor:.1f} times as long"
    return text_measure(text, len(recording.steps))


def drift_shape(recording: TelemetryRecording) -> Measure | Missing:
    """Whether the step time grows gradually, or at which step it jumps, as text."""
    drift = drift_of(recording)
    if drift is None:
        return _STEADY
    return text_measure("gradually" if drift.jump is None else f"at once, at about step {drift.jump:,}")


def growing_parts(recording: TelemetryRecording) -> Measure | Missing:
    """The parts of the step and the kinds of memory that grow together with the step time, each with its values in the
    first and last third of the run, as text."""
    drift = drift_of(recording)
    if drift is None:
        return _STEADY
    found = [*_growing_times(recording, drift), *_growing_series(recording)]
    return text_measure(", ".join(found), len(found)) if found else Missing("nothing recorded grows with the step time")


def samples_over_run(recording: TelemetryRecording) -> Measure | Missing:
    """Samples per step in the first and the last third of the run, as text."""
    samples = _thirds(recording, "samples")
    if samples is None:
        return Missing(recording.why_missing("samples"))
    return text_measure(f"{samples[0]:,.0f} to {samples[1]:,.0f}")


def largest_growth(recording: TelemetryRecording) -> Measure | Missing:
    """The part of the step that grows most, as text: the name of a timed part, or "outside" for the time outside of all
    timed parts."""
    changes = {name: after - before for name, (before, after) in _part_times(recording).items()}
    largest = max(changes, key=lambda name: changes[name], default="")
    return text_measure(largest) if largest else Missing("the parts of the step were not recorded")


def growth_within_epochs(recording: TelemetryRecording) -> Measure | Missing:
    """Median step time in the last third of an epoch / in its first third: the median of this ratio over all epochs
    (count). Missing unless most epochs show a growth."""
    begun, rows, _ = recording.windows.highest("epoch_start")
    times, count, number, _ = _steps(recording)
    starts = begun[np.nan_to_num(rows) > 0]
    if len(starts) < MIN_EPOCHS:
        return Missing("too few epochs were recorded")
    epoch = np.searchsorted(starts, number, side="right")
    ratios = []
    for at in range(1, len(starts)):  # the last one may not be complete
        own = epoch == at
        if own.sum() < MIN_EPOCH_ROWS:
            continue
        third = _parts(count[own], 3)
        first, last = (percentile(times[own][third == part], 50, count[own][third == part]) for part in (0, 2))
        ratios.append(last / first if first > 0 else 1.0)
    if len(ratios) < MIN_EPOCHS - 1 or np.mean(np.array(ratios) >= SAME_GROWTH) < MOST_EPOCHS:
        return Missing("steps do not become longer within the epochs")
    return Measure(float(np.median(ratios)), "count", "epoch", len(ratios), EVIDENCE_SOURCE)


def _steps(recording: TelemetryRecording) -> tuple[Floats, Times, Times, Floats]:
    """Returns four arrays with one element per row of judged steps (a row is one step, or the mean of several steps):
    mean time of a step without irregular parts, number of steps in the row, mean step number, mean wall time of a step.

    Times are in ns.
    """
    windows = recording.windows
    number, _, wall = windows.highest("wall")
    apart = [windows.highest(name)[2] for name in (*INTERRUPTIONS, "epoch_start")]
    times = np.maximum(wall - sum((np.nan_to_num(each) for each in apart), np.zeros(len(wall))), 0.0)
    waited = np.nan_to_num(core_wait_by_window(recording))[windows.window_of_steps]
    return times * (1.0 - np.clip(waited, 0.0, 1.0)), windows.counts_of_steps, number, wall


def _parts(weight: Floats | Times, parts: int) -> Times:
    """Divides rows, which are in order of time, into `parts` parts with about the same sum of `weight`. Returns for
    each row the index of its part, from 0 to `parts` - 1."""
    middle = np.cumsum(weight) - weight / 2
    return np.asarray(np.minimum(middle * parts / max(weight.sum(), 1), parts - 1), np.int64)


def _common_growth(recording: TelemetryRecording) -> float:
    """Returns the factor, at least 1, by which all timed parts of the step grow at least.

    Parts smaller than MIN_PART of the step, except the optimizer, are ignored. Returns 1 if fewer than MIN_PARTS parts
    remain, or if the optimizer is not among them.
    """
    parts = _part_times(recording)
    least = MIN_PART * sum(before for before, _ in parts.values())
    growth = {
        name: after / before
        for name, (before, after) in parts.items()
        if name != "outside"
        and before > 0
        and before >= (min(least, MIN_OPTIMIZER_NS) if name == "optimizer" else least)
    }
    return max(min(growth.values()), 1.0) if len(growth) >= MIN_PARTS and "optimizer" in growth else 1.0


def _rises(values: Floats) -> bool:
    """Returns True if `values`, which are in order of time, tend to rise (Kendall's tau of at least RISING), or if all
    values after some position exceed all values before it."""
    later, earlier = np.triu_indices(len(values), 1)[::-1]
    if np.sign(values[later] - values[earlier]).mean() >= RISING:  # Kendall's tau
        return True
    most_before, least_after = np.maximum.accumulate(values)[:-1], np.minimum.accumulate(values[::-1])[::-1][1:]
    return bool((most_before < least_after)[MIN_SIDE - 1 : 1 - MIN_SIDE].any())


def _thirds(recording: TelemetryRecording, column: str) -> tuple[float, float] | None:
    """Returns the means of the step column `column` in the first and the last third of the run, or None if one of the
    means is not known."""
    _, _, mean = recording.windows.highest(column)
    count = recording.windows.counts_of_steps
    if not len(count):
        return None
    third = _parts(recording.windows.highest("wall")[2] * count, 3)
    known = ~np.isnan(mean)
    sides = [known & (third == at) for at in (0, 2)]
    if not all(side.any() for side in sides):
        return None
    first, last = (float(np.average(mean[side], weights=count[side])) for side in sides)
    return first, last


def _part_times(recording: TelemetryRecording) -> dict[str, tuple[float, float]]:
    """Returns a dict: name of a timed part of the step -> (mean time in the first third of the run, mean time in the
    last third), in ns.

    If all phases were timed, the dict also has "outside": the time of the step outside of all timed parts and
    interruptions.
    """
    known = {name: _thirds(recording, name) for name in ("loader_wait", "transfer", *PHASES)}
    found = {name: both for name, both in known.items() if both is not None}
    wall = _thirds(recording, "wall")
    if wall is not None and all(name in found for name in PHASES):
        inside = [sum(both[at] for both in found.values()) for at in (0, 1)]
        apart = [both for name in INTERRUPTIONS if (both := _thirds(recording, name)) is not None]
        rest = [max(wall[at] - inside[at] - sum(both[at] for both in apart), 0.0) for at in (0, 1)]
        found["outside"] = rest[0], rest[1]
    return found


def _growing_times(recording: TelemetryRecording, drift: Drift) -> Iterator[str]:
    """Yields a text for each part of the step that has at least OF_GROWTH of the growth, the largest growth first."""
    parts = _part_times(recording)
    for name in sorted(parts, key=lambda name: parts[name][0] - parts[name][1]):
        before, after = parts[name]
        if after - before >= OF_GROWTH * (drift.last - drift.first):
            yield f"{_TIMES[name]} {duration_text(before)} to {duration_text(after)}"


def _growing_series(recording: TelemetryRecording) -> Iterator[str]:
    """Yields a text for each series of memory that grows at least by the factor SAME_GROWTH."""
    for name, said in _SERIES.items():
        values = recording.windows.readings(name, of_device=name == "memory_used")[1]
        third = len(values) // 3
        if not third:
            continue
        before, after = float(np.median(values[:third])), float(np.median(values[-third:]))
        if after >= SAME_GROWTH * before > 0:
            yield f"{said} {bytes_text(before)} to {bytes_text(after)}"
