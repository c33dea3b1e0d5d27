"""Time spans of the analysed window with the regime that owns each span, and the account: the total time by regime.

Time is attributed only once, as spans. The account of the window, the account of each step, and the account lane of the
timeline are all computed from these spans.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tb_bottleneck.attribution.cpu_collectives import host_collective_time
from tb_bottleneck.base.intervals import Spans, subtract, union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.trace.table import Ints, Table, column
from tb_bottleneck.trace.trace import Trace


class Account(Record, frozen=True):
    """The time of the window by regime. `ns` maps each regime to its time in ns. `window` is the sum of these times."""

    ns: dict[Regime, int]
    window: int

    def share(self, regime: Regime) -> float:
        """Returns the share of the window, 0 to 1, that `regime` owns."""
        return self.ns[regime] / self.window


def account_of(window: int, ns: dict[Regime, int]) -> Account:
    """Returns the account of a window of `window` ns. `ns` has the time of each regime; missing regimes get 0 ns.

    Raises ValueError if the times in `ns` do not sum to `window`.
    """
    if sum(ns.values()) != window:
        raise ValueError(f"the account does not sum to the window: {sum(ns.values())} of {window} ns")
    return Account({regime: ns.get(regime, 0) for regime in REGIMES}, window)


Claim = tuple[Regime, Ints, Ints]
"""A regime, and arrays with the start times and end times (ns) of the spans that the regime owns.

The spans of all claims on a window are disjoint."""


@dataclass(frozen=True, eq=False)
class OwnedSpans(Table):
    """Sorted, disjoint time spans, each with the regime that owns it."""

    start: Ints = column("ns", "begin")
    end: Ints = column("ns", "end")
    regime: Ints = column("row of REGIMES", "the owner")

    def of(self, regime: Regime) -> Spans:
        """Returns the spans that `regime` owns, in ns; an empty set if it owns none."""
        rows = self.regime == REGIMES.index(regime)
        return union(self.start[rows], self.end[rows])

    def totals(self) -> dict[Regime, int]:
        """Returns the total time of each regime, in ns; 0 for regimes that own no span."""
        ns = np.zeros(len(REGIMES), np.int64)
        np.add.at(ns, self.regime, self.end - self.start)
        return dict(zip(REGIMES, ns.tolist(), strict=True))

    def covered(self, begin: ArrayLike, end: ArrayLike) -> dict[Regime, Ints]:
        """Returns a dict from each regime to an array. Element i is the regime's time in [begin[i], end[i]), in ns."""
        return {regime: self.of(regime).covered(begin, end) for regime in REGIMES}


def owned_spans_of(trace: Trace, claims: Iterable[Claim]) -> OwnedSpans:
    """Returns the spans of all `claims` on a window, in order of time.

    Time of `host` in which a collective runs on the host belongs to `communication` instead.
    """
    parts = list(_with_collectives(trace, claims))
    start = np.concatenate([begin for _, begin, _ in parts])
    end = np.concatenate([end for _, _, end in parts])
    regime = np.repeat([REGIMES.index(owner) for owner, _, _ in parts], [len(begin) for _, begin, _ in parts])
    rows = np.flatnonzero(end > start)
    rows = rows[np.argsort(start[rows], kind="stable")]
    return OwnedSpans(start[rows], end[rows], regime[rows].astype(np.int64))


def _with_collectives(trace: Trace, claims: Iterable[Claim]) -> Iterator[Claim]:
    """Yields the claims, with the time of host collectives moved from `host` to `communication`
    (cpu_collectives.py)."""
    for regime, begins, ends in claims:
        if regime is not Regime.HOST:
            yield regime, begins, ends
            continue
        host = union(begins, ends)
        collectives = host_collective_time(trace, host)
        rest = subtract(host, collectives)
        yield Regime.COMMUNICATION, collectives.starts, collectives.ends
        yield Regime.HOST, rest.starts, rest.ends
