"""Replays a recording with changed lengths of its device work, and divides the resulting step time between the regimes
(kinds of time).

The replay keeps everything on the host as recorded, so host work that the device had hidden becomes visible when the
device gets faster. Do not predict from a recording whose replay is not trusted (replay/simulator.py).

The replay gives a time for each step. As in measured runs, isolated long steps are left out of the mean, because they
are disturbed. With another device, the disturbed steps may be other ones than in the recording.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.device_attribution import ops_by_regime
from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import clip
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.comparison.significance import Times, undisturbed
from tb_bottleneck.replay.modified_graph import ModifiedGraph, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.table import Bools, Floats, Ints

BUSY_REGIMES = tuple(regime for regime in REGIMES if regime.device_busy)
# In a replay, the waits for the device follow from the lengths of the device's work.
_REGIME_OF_WORK: dict[Activity, Regime] = {
    activity: regime for activity, regime in REGIME_OF_ACTIVITY.items() if activity is not Activity.SYNCHRONIZE
}
BOUND_OF_REGIME = {Regime.COMPUTE: BoundBy.COMPUTE, Regime.MEMORY: BoundBy.MEMORY}
Modification = Callable[[ModifiedGraph], ModifiedGraph]


@dataclass(frozen=True)
class PredictedStep:
    """A predicted step. `ns` is the mean time per step by regime in ns, without isolated long steps.

    `least_ns` is the time per step in ns in which the device computes. No change of the host can make the step shorter
    than this time.
    """

    ns: dict[Regime, float]
    least_ns: float

    @property
    def step_ns(self) -> float:
        """The mean time per step in ns, without isolated long steps."""
        return sum(self.ns.values())


@dataclass(frozen=True, eq=False)
class ReplayPredictor:
    """Predicts steps under changed conditions from one recording.

    `bounds` are the starts and the ends of the compared steps in ns, as two arrays; None means the steps of the
    recording. `base` is the dependency graph of the recording.
    """

    recording: Recording
    bounds: tuple[Ints, Ints] | None = None
    base: RecordedGraph = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", RecordedGraph(self.recording))

    def predict(
        self, lengths: Floats | None = None, change: Modification | None = None, bounds: Ints | None = None
    ) -> PredictedStep:
        """Predicts the step with other lengths of the device operations, and with a change of the other parts of the
        graph.

        `lengths` has the new length in ns of each operation of the judged device. `change` modifies the graph. `bounds`
        has what limits each operation with its new length (BoundBy). None means unchanged.
        """
        busy = self._busy(lengths, bounds)
        start = unmodified_graph(self.base)
        graph = start if change is None else change(start)
        idle = self._idle_after(graph)
        if lengths is not None:
            graph = graph.with_items(length=self._lengths(lengths))
        computes = float(self.base.busy_with(graph.items.length))
        least = computes / len(self.recording.steps)
        window, free = graph.window(), replace(graph, floor=0.0).window()
        of_window = self.recording.account.window / start.window()
        surplus = self._surplus(busy, idle, free < window, lengths)
        account = self._account(max(window * of_window, computes), busy, idle, surplus)
        return PredictedStep(self._undisturbed(account, graph.step_times(), least), least)

    def _undisturbed(self, account: dict[Regime, float], times: Times, least: float) -> dict[Regime, float]:
        """Returns the mean time per step by regime in ns, without isolated long steps.

        `account` has the predicted mean of all steps by regime, `times` the predicted times of the steps, and `least`
        the compute time of the device per step, all in ns. The recording gives for each regime the ratio (time in the
        included steps / time in all steps). The resulting step is at least `least` times this ratio for the busy time
        of the device, because a shorter step would only move device work to the next step.
        """
        rows, steps = undisturbed(times), self.recording.steps
        if rows.all() and self.bounds is None:
            return account
        whole, recorded = (steps.edges[:-1], steps.edges[1:]), self.recording.account.ns
        kept, cut = (self._recorded_in(rows, bounds) for bounds in (whole, self.bounds or whole))
        every = {regime: recorded[regime] / len(steps) for regime in REGIMES}
        share = {regime: kept[regime] / every[regime] if every[regime] else 1.0 for regime in REGIMES}
        step = sum(account.values()) * float(np.mean(times[rows]) / np.mean(times))
        busy_now, busy_kept = (sum(ns[regime] for regime in BUSY_REGIMES) for ns in (every, kept))
        step = max(step, least * busy_kept / max(busy_now, 1.0))
        scale = step / max(sum(account[regime] * share[regime] for regime in REGIMES), 1.0)
        share = {regime: cut[regime] / every[regime] if every[regime] else 1.0 for regime in REGIMES}
        return {regime: account[regime] * share[regime] * scale for regime in REGIMES}

    def _recorded_in(self, rows: Bools, bounds: tuple[Ints, Ints]) -> dict[Regime, float]:
        """Returns the recorded mean time by regime in ns of the steps in the mask `rows`. `bounds` has the starts and
        the ends of all steps, as two arrays in ns."""
        covered = self.recording.owned_spans.covered(bounds[0][rows], bounds[1][rows])
        return {regime: float(np.mean(covered[regime])) for regime in REGIMES}

    def _lengths(self, lengths: Floats) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Returns the new length in ns of each item of the graph. `lengths` has the new lengths of the operations of
        the judged device. Operations of other devices change by the same factor as kernels with the same name on that
        device."""
        trace, items = self.recording.trace, self.base.graph.items
        all_ops, own_ops = trace.all_device_ops, trace.device_ops
        before = np.maximum(own_ops.end - own_ops.start, 1)
        after, now = (
            np.bincount(own_ops.name, weights=times, minlength=len(trace.names)) for times in (lengths, before)
        )
        factor = np.divide(after, now, out=np.ones(len(trace.names)), where=now > 0)
        length = (all_ops.end - all_ops.start) * factor[all_ops.name]
        length[all_ops.device == trace.device_index] = lengths
        return np.where(items.op >= 0, np.rint(length).astype(np.int64)[items.op], items.length)

    def _busy(self, lengths: Floats | None, bounds: Ints | None = None) -> dict[Regime, float]:
        """Returns the time of the window in ns in which the device works, by regime. `lengths` and `bounds` are as in
        predict. The result is empty for a CPU run."""
        if not self.recording.on_device:
            return {}
        ops = self.recording.trace.device_ops
        before = (ops.end - ops.start).astype(np.float64)
        after = before if lengths is None else lengths
        busy = dict.fromkeys(BUSY_REGIMES, 0.0)
        for regime, spans in self.recording.busy.items():
            owning = spans.covered(ops.start, ops.end) * self._claims[regime]
            after_owned = owning * after / np.maximum(before, 1.0)
            whole = float(owning.sum())
            for now, rows in _split_by_bound(regime, self._claims[regime], bounds).items():
                part = float(after_owned[rows].sum()) / whole if whole else float(now == regime)
                busy[now] = busy.get(now, 0.0) + spans.total() * part
        own_pauses = self.recording.account.ns[Regime.UNDERFILLED] - self.recording.busy[Regime.UNDERFILLED].total()
        return busy | {Regime.UNDERFILLED: busy[Regime.UNDERFILLED] + own_pauses}

    @cached_property
    def _claims(self) -> dict[Regime, Bools]:
        """For each regime, a mask of the operations of the judged device whose time belongs to this regime if no other
        operation runs at the same time."""
        return ops_by_regime(self.recording.trace.device_ops, self.recording.kernel_bounds)

    def _idle(self) -> dict[Regime, float]:
        """Returns the recorded time of the window in ns in which the device waits for the host, by regime."""
        recorded = self._busy(None)
        return {regime: max(ns - recorded.get(regime, 0.0), 0.0) for regime, ns in self.recording.account.ns.items()}

    def _idle_after(self, graph: ModifiedGraph) -> dict[Regime, float]:
        """Returns the times of _idle, multiplied for each regime by (time of its host activity in the modified `graph`
        / recorded time of this activity)."""
        before, after = self.base.graph.items.gap, graph.items.gap
        idle = self._idle()
        for activity, regime in _REGIME_OF_WORK.items():
            recorded, modified = before.of(activity).sum(), after.of(activity).sum()
            if recorded and recorded != modified:
                idle[regime] *= float(modified / recorded)
        return idle

    def _account(
        self, window: float, busy: dict[Regime, float], idle: dict[Regime, float], surplus: dict[Regime, float]
    ) -> dict[Regime, float]:
        """Returns the predicted time per step by regime in ns, for a window of `window` ns.

        `busy` and `idle` have the times in ns by regime in which the device works, and in which it waits for the host.
        If they do not sum to `window`, `idle` is corrected: the times of all its regimes are reduced by the same
        factor, or the missing time is added according to `surplus`, the share (0 to 1) of each regime in it.
        """
        rest, idle_sum = window - sum(busy.values()), sum(idle.values())
        if rest <= idle_sum:
            owned = {regime: ns * max(rest, 0.0) / idle_sum if idle_sum else 0.0 for regime, ns in idle.items()}
        else:
            owned = {regime: ns + surplus.get(regime, 0.0) * (rest - idle_sum) for regime, ns in idle.items()}
        steps = len(self.recording.steps)
        by_regime = {regime: (owned.get(regime, 0.0) + busy.get(regime, 0.0)) / steps for regime in REGIMES}
        whole = sum(by_regime.values()) * steps
        return {regime: ns * window / whole for regime, ns in by_regime.items()} if whole else by_regime

    def _surplus(
        self, busy: dict[Regime, float], idle: dict[Regime, float], loader_limited: bool, lengths: Floats | None
    ) -> dict[Regime, float]:
        """Returns the shares by regime of the surplus: the time by which a window exceeds device work plus idle time.

        If making batches limits the window (`loader_limited`), the surplus belongs to the loader (`input`). If copies
        or collectives grew most, the surplus belongs to their regimes. If the device works longer than recorded, it
        hides more host work than before; the surplus then belongs to the regimes of the device, in proportion to
        `busy`. Otherwise, host work that the device hid becomes visible (_hidden). `busy` and `idle` are as in
        _account, `lengths` as in predict.
        """
        if loader_limited:
            return {Regime.INPUT: 1.0}
        uncovered = self._uncovered(lengths)
        if uncovered:
            return uncovered
        whole = sum(busy.values())
        if whole > sum(self._busy(None).values()):
            return {regime: ns / whole for regime, ns in busy.items()}
        return self._hidden(idle)

    def _uncovered(self, lengths: Floats | None) -> dict[Regime, float]:
        """Returns the shares of copies and of collectives in the growth of both, by regime. The result is empty if the
        growth of both is at most half of the growth of all operations. `lengths` are as in predict."""
        if lengths is None or not self.recording.on_device:
            return {}
        ops = self.recording.trace.device_ops
        grown = (lengths - (ops.end - ops.start)) * self.recording.in_window(ops.start)
        growth = {
            regime: max(float(grown[self._claims[regime]].sum()), 0.0)
            for regime in (Regime.COMMUNICATION, Regime.TRANSFER)
        }
        whole, every = sum(growth.values()), float(grown.sum())
        return {regime: ns / whole for regime, ns in growth.items()} if whole > max(every, 0.0) / 2 else {}

    def _hidden(self, idle: dict[Regime, float]) -> dict[Regime, float]:
        """Returns how the host work that runs while the device works is divided between regimes, as shares that sum to
        1. The time of this work in a regime is the time of the main thread's activities minus `idle` (ns by regime)."""
        recording = self.recording
        thread = recording.host.main_thread
        if thread is None:
            return {Regime.UNEXPLAINED: 1.0}
        spent: dict[Regime, float] = {}
        for activity, spans in recording.host.activities(thread).items():
            regime = _REGIME_OF_WORK.get(activity)
            if regime is not None:
                inside = clip(spans, int(recording.steps.host[0]), int(recording.steps.host[-1])).total()
                spent[regime] = spent.get(regime, 0.0) + inside
        hidden = {regime: max(ns - idle.get(regime, 0.0), 0.0) for regime, ns in spent.items()}
        whole = sum(hidden.values())
        return {regime: ns / whole for regime, ns in hidden.items()} if whole else {Regime.LAUNCH: 1.0}


def _split_by_bound(regime: Regime, inside: Bools, bounds: Ints | None) -> dict[Regime, Bools]:
    """Returns the mask `inside` of the operations of `regime`, divided by the regime to which they belong with the new
    `bounds` (BoundBy per operation; None means unchanged)."""
    if bounds is None or regime not in BOUND_OF_REGIME:
        return {regime: inside}
    other = next(name for name in BOUND_OF_REGIME if name != regime)
    moved = inside & (bounds == BOUND_OF_REGIME[other])
    return {regime: inside & ~moved, other: moved}
