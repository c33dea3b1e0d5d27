"""Constants that were fitted to pairs of real recordings: what the errors are if the predicted pair is left out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from types import ModuleType

from helpers.real_pairs import RealPair

from tb_bottleneck.bottlenecks.compute import product_precision
from tb_bottleneck.bottlenecks.memory import fixes as memory
from tb_bottleneck.bottlenecks.sync import fixes as waits
from tb_bottleneck.replay.modified_graph import Estimate

SAME = 1e-6  # a prediction that changes by less does not depend on a constant


@dataclass(frozen=True)
class Constant:
    """A fitted constant: its module and name, the values to fit, and its value without any recording."""

    module: ModuleType
    name: str
    values: tuple[float, ...]
    unfitted: float

    @property
    def value(self) -> float:
        """The value in the code: of dictionaries, that of the expected estimate."""
        now = getattr(self.module, self.name)
        return float(now[Estimate.EXPECTED] if isinstance(now, dict) else now)

    def predicted(self, pair: RealPair, value: float) -> float:
        """Returns the gain that is predicted with this value; 1 if nothing is predicted."""
        before = getattr(self.module, self.name)
        after = before | {Estimate.EXPECTED: value} if isinstance(before, dict) else value
        setattr(self.module, self.name, after)
        try:
            gain = pair.prediction()
        finally:
            setattr(self.module, self.name, before)
        return 1.0 if gain is None else gain.expected


SHARES = tuple(step / 10 for step in range(11))
FITTED = (
    # Without any recording: the kernels of a chain but the longest vanish, no wait stays, other operations stay.
    Constant(memory, "MERGED_REMAINING", SHARES, 0.0),
    Constant(waits, "COMBINED_REMAINING", SHARES, 0.0),
    Constant(product_precision, "AUTOCAST_BYTES", (*SHARES, 0.95), 1.0),
)


@dataclass(frozen=True)
class Refit:
    """One pair and one constant: the errors (measured / predicted - 1) as fitted, and fitted to the other pairs."""

    pair: str
    constant: str
    fitted_to: tuple[str, ...]
    value: float
    error: float
    error_left_out: float


def refits(pairs: Sequence[RealPair], note: Callable[[str], None]) -> Iterator[Refit]:
    """Yields, for each constant and each counted pair that depends on it, the result without the pair."""
    predicting = [pair for pair in pairs if pair.counted and pair.facts.get("predict")]
    for constant in FITTED:
        note(constant.name)
        ends = constant.values[0], constant.values[-2]
        gains: dict[str, dict[float, float]] = {}
        for pair in predicting:
            known = {value: constant.predicted(pair, value) for value in ends}
            low, high = known.values()
            if abs(low / high - 1) > SAME:
                gains[pair.name] = {
                    value: known[value] if value in known else constant.predicted(pair, value)
                    for value in (*constant.values, constant.value, constant.unfitted)
                }
        measured = {pair.name: pair.measured for pair in predicting}
        for pair in predicting:
            if pair.name in gains:
                yield _without(pair, constant, gains, measured)


def _without(
    pair: RealPair, constant: Constant, gains: dict[str, dict[float, float]], measured: dict[str, float]
) -> Refit:
    others = tuple(name for name in gains if name != pair.name)
    value = constant.unfitted
    if others:
        value = min(
            constant.values, key=lambda value: sum(abs(log(measured[name] / gains[name][value])) for name in others)
        )
    errors = [pair.measured / gains[pair.name][each] - 1 for each in (constant.value, value)]
    return Refit(pair.name, constant.name, others, value, *errors)
