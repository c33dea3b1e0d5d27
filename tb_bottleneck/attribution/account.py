"""The account: the time of the window by regime."""

from tb_bottleneck.record import Record
from tb_bottleneck.regime import REGIMES, Regime


class Account(Record, frozen=True):
    """Nanoseconds of the window by regime; they sum to `window`."""

    ns: dict[Regime, int]
    window: int

    def share(self, regime: Regime) -> float:
        """Share of the window."""
        return self.ns[regime] / self.window


def account_of(window: int, ns: dict[Regime, int]) -> Account:
    """Returns an account with a row for every regime. Raises ValueError if the parts do not sum to the window."""
    if sum(ns.values()) != window:
        raise ValueError(f"the account does not sum to the window: {sum(ns.values())} of {window} ns")
    return Account({regime: ns.get(regime, 0) for regime in REGIMES}, window)
