"""What a rule is: a value that pairs a regime with the function that judges it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.regime import Regime

FIRES, CLEAR, ABSTAINS, BROKEN = "fires", "clear", "abstains", "broken"


@dataclass(frozen=True)
class Cause:
    """Why a regime owns time. `cost_share` is the share of the window at stake; `evidence` are the measures that show
    it.

    `bounded` tells whether removing the cause can at best give back `cost_share`; else no gain is stated.
    """

    name: str
    cost_share: float
    evidence: tuple[MeasureFunction, ...]
    bounded: bool = True


@dataclass(frozen=True)
class Judgement:
    """The answer of a rule. `recoverable` is the share of the window that curing the regime could give back at most.

    `missing` names the signals without which the rule abstains.
    """

    status: str
    share: float
    recoverable: float = 0.0
    causes: tuple[Cause, ...] = ()
    evidence: tuple[MeasureFunction, ...] = ()
    missing: str = ""


@dataclass(frozen=True)
class Rule:
    """A regime, how it is judged, and from which share of the window on it fires."""

    regime: Regime
    judge: Callable[[Measures], Judgement]
    fires_at: float


@dataclass(frozen=True)
class Verdict:
    """A judged regime with the measures it rests on, by key."""

    regime: Regime
    judgement: Judgement
    facts: dict[str, Measure | Missing] = field(default_factory=dict)


def idle_judgement(
    measures: Measures,
    regime: Regime,
    fires_at: float,
    causes: Callable[[Measures], tuple[Cause, ...]],
    recoverable: float = 1.0,
    seen_by: MeasureFunction | None = None,
) -> Judgement:
    """The judgement of a regime that keeps the device from working: it fires by its share of the account.

    `causes` is asked for them only where it fires.
    `seen_by` is the measure without which the regime's time would not have been seen: where it is missing, a low share
    says nothing, and the rule abstains.
    """
    share = measures.account.share(regime)
    if share < fires_at:
        seen = measures(seen_by) if seen_by is not None else None
        if isinstance(seen, Missing):
            return Judgement(ABSTAINS, share, share * recoverable, missing=seen.because)
        return Judgement(CLEAR, share, share * recoverable)
    return Judgement(FIRES, share, share * recoverable, causes(measures))
