"""Replays a recording with other lengths of its device work, and tells who would own the step then.

The replay keeps everything on the host as it was recorded, so host work that the device had hidden comes to light where
the device gets faster. Where a replay cannot be trusted, the account alone is asked: the host's pauses stay, the
device's work shrinks or grows, and no step is shorter than the host's own work.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.device_busy import ops_by_regime
from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import clip
from tb_bottleneck.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.replay.modified_graph import ModifiedGraph, RecordedGraph, unmodified_graph
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.table import Bools, Floats, Ints

BY_REPLAY, BY_ACCOUNT = "replay", "account"
BUSY_REGIMES = (*DEVICE_REGIMES, Regime.COMMUNICATION, Regime.TRANSFER)
# In a replay, the waits for the device follow from the lengths of the device's work.
_REGIME_OF_WORK: dict[Activity, Regime] = {
    activity: regime for activity, regime in REGIME_OF_ACTIVITY.items() if activity is not Activity.SYNCHRONIZE
}
ROOFS = {Regime.COMPUTE: BoundBy.COMPUTE, Regime.MEMORY: BoundBy.MEMORY}
Change = Callable[[ModifiedGraph], ModifiedGraph]


@dataclass(frozen=True)
class PredictedStep:
    """Time per step by regime, in ns, and in all; `basis` says how it was found.

    `least_ns` is the time per step for which the device computes then: no host makes a step shorter.
    """

    ns: dict[Regime, float]
    basis: str
    least_ns: float

    @property
    def step_ns(self) -> float:
        """Time per step."""
        return sum(self.ns.values())


@dataclass(frozen=True, eq=False)
class ReplayPredictor:
    """Predictions from one recording."""

    recording: Recording
    base: RecordedGraph = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", RecordedGraph(self.recording))

    def predict(
        self, lengths: Floats | None = None, change: Change | None = None, roofs: Ints | None = None
    ) -> PredictedStep:
        """With these lengths of the operations of the trace's device in ns, and a change of the rest of the world.

        `roofs` are those that bound the operations then, where they are known and may have changed.
        """
        busy = self._busy(lengths, roofs)
        start = unmodified_graph(self.base)
        graph = start if change is None else change(start)
        idle = self._idle_after(graph)
        if lengths is not None:
            graph = graph.with_items(length=self._lengths(lengths))
        computes = float(self.base.busy_with(graph.items.length))
        least = computes / len(self.recording.steps)
        if not self.base.check.trusted:
            whole = max(sum(busy.values()) + sum(idle.values()), self._host_work())
            window = max(whole, graph.floor)
            surplus = self._surplus(busy, idle, whole < graph.floor, lengths)
            return PredictedStep(self._account(window, busy, idle, surplus), BY_ACCOUNT, least)
        window, free = graph.window(), replace(graph, floor=0.0).window()
        of_window = self.recording.account.window / start.window()
        surplus = self._surplus(busy, idle, free < window, lengths)
        return PredictedStep(self._account(max(window * of_window, computes), busy, idle, surplus), BY_REPLAY, least)

    def _lengths(self, lengths: Floats) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Lengths of the items; what other devices do changes as the same kernels of this one do."""
        trace, items = self.recording.trace, self.base.graph.items
        every, ours = trace.all_device_ops, trace.device_ops
        before = np.maximum(ours.end - ours.start, 1)
        after, now = (np.bincount(ours.name, weights=times, minlength=len(trace.names)) for times in (lengths, before))
        factor = np.divide(after, now, out=np.ones(len(trace.names)), where=now > 0)
        length = (every.end - every.start) * factor[every.name]
        length[every.device == trace.device_index] = lengths
        return np.where(items.op >= 0, np.rint(length).astype(np.int64)[items.op], items.length)

    def _busy(self, lengths: Floats | None, roofs: Ints | None = None) -> dict[Regime, float]:
        """Time of the window by regime in which the device works, after its operations have changed their lengths."""
        if not self.recording.on_device:
            return {}
        ops = self.recording.trace.device_ops
        before = (ops.end - ops.start).astype(np.float64)
        after = before if lengths is None else lengths
        busy = dict.fromkeys(BUSY_REGIMES, 0.0)
        for regime, spans in self.recording.busy.items():
            owning = spans.covered(ops.start, ops.end) * self._claims[regime]
            then = owning * after / np.maximum(before, 1.0)
            whole = float(owning.sum())
            for now, rows in _now_bound(regime, self._claims[regime], roofs).items():
                part = float(then[rows].sum()) / whole if whole else float(now == regime)
                busy[now] = busy.get(now, 0.0) + spans.total() * part
        own_pauses = self.recording.account.ns[Regime.UNDERFILLED] - self.recording.busy[Regime.UNDERFILLED].total()
        return busy | {Regime.UNDERFILLED: busy[Regime.UNDERFILLED] + own_pauses}

    @cached_property
    def _claims(self) -> dict[Regime, Bools]:
        """Which operations of the trace's device own time where they run alone, by owner."""
        trace = self.recording.trace
        return ops_by_regime(trace.device_ops, self.recording.kernel_bounds, trace.multiprocessors)

    def _idle(self) -> dict[Regime, float]:
        """Recorded time of the window by regime in which the device waits for the host."""
        recorded = self._busy(None)
        return {regime: max(ns - recorded.get(regime, 0.0), 0.0) for regime, ns in self.recording.account.ns.items()}

    def _idle_after(self, graph: ModifiedGraph) -> dict[Regime, float]:
        """The same, as far as the host does more or less than before in a changed world."""
        before, after = (items.gap.sum(axis=0) for items in (self.base.graph.items, graph.items))
        idle = self._idle()
        for activity, regime in _REGIME_OF_WORK.items():
            if before[activity] and before[activity] != after[activity]:
                idle[regime] *= float(after[activity] / before[activity])
        return idle

    def _host_work(self) -> float:
        """Time of the window that the host was not waiting for the device, in ns."""
        steps, waits = self.recording.steps, self.recording.gaps.waits
        inside = (waits.over >= steps.host[0]) & (waits.over <= steps.host[-1])
        return max(float(steps.host[-1] - steps.host[0] - waits.length[inside].sum()), 0.0)

    def _account(
        self, window: float, busy: dict[Regime, float], idle: dict[Regime, float], surplus: dict[Regime, float]
    ) -> dict[Regime, float]:
        """Time per step by regime, of a window in which the device works for `busy` and waits for the host for `idle`.

        Where less is left for the host, all its regimes shrink alike; where more, it goes by these shares.
        """
        left, known = window - sum(busy.values()), sum(idle.values())
        if left <= known:
            owned = {regime: ns * max(left, 0.0) / known if known else 0.0 for regime, ns in idle.items()}
        else:
            owned = {regime: ns + surplus.get(regime, 0.0) * (left - known) for regime, ns in idle.items()}
        steps = len(self.recording.steps)
        found = {regime: (owned.get(regime, 0.0) + busy.get(regime, 0.0)) / steps for regime in REGIMES}
        whole = sum(found.values()) * steps
        return {regime: ns * window / whole for regime, ns in found.items()} if whole else found

    def _surplus(
        self, busy: dict[Regime, float], idle: dict[Regime, float], starved: bool, lengths: Floats | None
    ) -> dict[Regime, float]:
        """Whose it is, as shares by regime, if a window turns out longer than the device's work and the host's pauses.

        Of a window that is as long as making its batches takes, the loader's. Where copies or collectives grew beyond
        what hid them, theirs. Where the device works longer than it was recorded to, it hides more of the host and not
        less: then it is the device's own, in proportion. Else what the device hid comes to light, in proportion to what
        the host did meanwhile.
        """
        if starved:
            return {Regime.INPUT: 1.0}
        uncovered = self._uncovered(lengths)
        if uncovered:
            return uncovered
        whole = sum(busy.values())
        if whole > sum(self._busy(None).values()):
            return {regime: ns / whole for regime, ns in busy.items()}
        return self._hidden(idle)

    def _uncovered(self, lengths: Floats | None) -> dict[Regime, float]:
        """What copies and collectives grew by, as shares by regime, where kernels did not grow by more; else empty."""
        if lengths is None or not self.recording.on_device:
            return {}
        ops = self.recording.trace.device_ops
        grown = (lengths - (ops.end - ops.start)) * self.recording.in_window(ops.start)
        found = {
            one: max(float(grown[self._claims[one]].sum()), 0.0) for one in (Regime.COMMUNICATION, Regime.TRANSFER)
        }
        whole, every = sum(found.values()), float(grown.sum())
        return {one: ns / whole for one, ns in found.items()} if whole > max(every, 0.0) / 2 else {}

    def _hidden(self, idle: dict[Regime, float]) -> dict[Regime, float]:
        """What the host does while the device works, as shares of it by regime."""
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


def _now_bound(regime: Regime, inside: Bools, roofs: Ints | None) -> dict[Regime, Bools]:
    """The operations of a regime by the regime that they are of now: another roof may bound them."""
    if roofs is None or regime not in ROOFS:
        return {regime: inside}
    other = next(name for name in ROOFS if name != regime)
    moved = inside & (roofs == ROOFS[other])
    return {regime: inside & ~moved, other: moved}
