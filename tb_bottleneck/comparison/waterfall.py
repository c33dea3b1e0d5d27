"""The time of A and B by regime; the differences sum to the whole difference."""

from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.schema import comparison_pb2 as pb


def waterfall(a: dict[Regime, float], b: dict[Regime, float]) -> list[pb.RegimeDelta]:
    """Returns one row for each regime, in the order of REGIMES. The arguments are ns by regime."""
    return [
        pb.RegimeDelta(
            regime=regime,
            a_ns=a[regime],
            b_ns=b[regime],
            delta_ns=b[regime] - a[regime],
            title=regime.label,
        )
        for regime in REGIMES
    ]
