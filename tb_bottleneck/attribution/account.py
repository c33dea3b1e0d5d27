"""The account: every nanosecond of the window has exactly one owner."""

from dataclasses import dataclass

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.idle_gaps import IdleGaps
from tb_bottleneck.intervals import Spans
from tb_bottleneck.regime import REGIMES, Regime

# Between two queued operations the device itself needs a moment: 0.75 us (V100), 1.2 us (H100), 2 to 3 us (A100) at the
# median of public traces. A pause up to this is the device's own; a longer one nobody recorded the reason of.
OWN_PAUSE_NS = 10_000


@dataclass(frozen=True)
class Account:
    """Nanoseconds of the window by regime; they sum to `window`."""

    ns: dict[Regime, int]
    window: int

    def share(self, regime: Regime) -> float:
        """Share of the window."""
        return self.ns[regime] / self.window


def account_of(window: int, ns: dict[Regime, int]) -> Account:
    """An account with a row for every regime. Raises ValueError where the parts do not sum to the window."""
    if sum(ns.values()) != window:
        raise ValueError(f"the account does not sum to the window: {sum(ns.values())} of {window} ns")
    return Account({regime: ns.get(regime, 0) for regime in REGIMES}, window)


def device_time_by_regime(busy: dict[Regime, Spans], gaps: IdleGaps) -> dict[Regime, int]:
    """Nanoseconds of the window by regime, on the timeline of an accelerator."""
    ns = _idle_by_regime(gaps)
    for regime, spans in busy.items():
        ns[regime] = ns.get(regime, 0) + spans.total()
    return ns


def _idle_by_regime(gaps: IdleGaps) -> dict[Regime, int]:
    activity = {word: int(gaps.by_activity[:, word].sum()) for word in Activity}
    bubble = int(gaps.sync_bubble.sum())
    own = int(gaps.queued[gaps.queued < OWN_PAUSE_NS].sum())
    return {
        Regime.INPUT: activity[Activity.LOAD_BATCH],
        Regime.INTERRUPTION: activity[Activity.INTERRUPT] + activity[Activity.INITIALIZE],
        Regime.ALLOCATOR: activity[Activity.ALLOCATE],
        Regime.TRANSFER: activity[Activity.COPY],
        Regime.SYNC: activity[Activity.SYNCHRONIZE] + bubble,
        Regime.LAUNCH: activity[Activity.DISPATCH] + int(gaps.latency.sum()) - bubble,
        Regime.HOST: activity[Activity.OTHER],
        Regime.UNDERFILLED: own,
        Regime.UNEXPLAINED: int(gaps.queued.sum()) - own + int(gaps.stalled.sum()),
    }
