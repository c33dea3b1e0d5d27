"""The account: every nanosecond of the window has exactly one owner."""

from dataclasses import dataclass

from tb_bottleneck.intervals import Spans
from tb_bottleneck.measures.doing import Doing
from tb_bottleneck.measures.gaps import Gaps

REGIMES = (
    "input",
    "transfer",
    "sync",
    "launch",
    "host",
    "allocator",
    "interruption",
    "communication",
    "memory",
    "compute",
    "underfilled",
    "unexplained",
)

# Between two queued operations the device itself needs a moment: 0.75 us (V100), 1.2 us (H100), 2 to 3 us (A100) at the
# median of public traces. A pause up to this is the device's own; a longer one nobody recorded the reason of.
OWN_PAUSE_NS = 10_000


# Regimes in which the device works, as against those that keep it from working.
DEVICE_REGIMES = ("memory", "compute", "underfilled")


@dataclass(frozen=True)
class Account:
    """Nanoseconds of the window by regime; they sum to `window`."""

    ns: dict[str, int]
    window: int

    def share(self, regime: str) -> float:
        """Share of the window."""
        return self.ns[regime] / self.window


def account_of(window: int, ns: dict[str, int]) -> Account:
    """An account with a row for every regime. Raises ValueError where the parts do not sum to the window."""
    if sum(ns.values()) != window:
        raise ValueError(f"the account does not sum to the window: {sum(ns.values())} of {window} ns")
    return Account({regime: ns.get(regime, 0) for regime in REGIMES}, window)


def device_time_by_regime(busy: dict[str, Spans], gaps: Gaps) -> dict[str, int]:
    """Nanoseconds of the window by regime, on the timeline of an accelerator."""
    ns = _idle_by_regime(gaps)
    for owner, spans in busy.items():
        regime = "unexplained" if owner == "unknown" else owner
        ns[regime] = ns.get(regime, 0) + spans.total()
    return ns


def _idle_by_regime(gaps: Gaps) -> dict[str, int]:
    doing = {word: int(gaps.by_doing[:, word].sum()) for word in Doing}
    bubble = int(gaps.sync_bubble.sum())
    own = int(gaps.queued[gaps.queued < OWN_PAUSE_NS].sum())
    return {
        "input": doing[Doing.LOAD],
        "interruption": doing[Doing.INTERRUPT] + doing[Doing.START],
        "allocator": doing[Doing.ALLOCATE],
        "transfer": doing[Doing.COPY],
        "sync": doing[Doing.WAIT] + bubble,
        "launch": doing[Doing.DISPATCH] + int(gaps.latency.sum()) - bubble,
        "host": doing[Doing.OTHER],
        "underfilled": own,
        "unexplained": int(gaps.queued.sum()) - own + int(gaps.stalled.sum()),
    }
