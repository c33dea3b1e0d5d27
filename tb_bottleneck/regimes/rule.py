"""A rule: a value that pairs a regime with the function that judges it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from tb_bottleneck.base.measure import Measure, Missing, share_between
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures, Source

FIRES, CLEAR, ABSTAINS, BROKEN = "fires", "clear", "abstains", "broken"

# A regime with less recoverable time than this does not name the run: the device's own work does.
# traceml warns from 10 % of the step on (diagnostics/step_time/policy.py).
WORTH_RECOVERING = 0.10

MACHINE_CAUSES = frozenset({"contended_cores"})
"""Causes that lie in other programs of the machine. The training can be changed; they often cannot."""
COMPARABLE = 1 / 3
"""A cause of the program itself with this part of the cost of one of the machine comes first. A choice: on a shared
machine, other programs took the headline of 4 of 19 trainings, each of which had a cause of its own."""


@dataclass(frozen=True)
class Cause(Generic[Source]):
    """A reason why a regime owns time, with its own fix.

    `cost_share` is the share of the window at stake. `evidence` are the measures that show the cause. `bounded` is True
    if removing the cause recovers at most `cost_share`, or `most` if that is given and larger, because what remains
    becomes faster, too; otherwise no bound is stated. `certain` is False if the source
    cannot show that a fix recovers anything: the bound then holds, although less counts as recoverable. `recurs` is
    False if a run pays the cost once, at its start: a fix makes no later step faster, so nothing is recoverable.
    """

    name: str
    cost_share: float
    evidence: tuple[MeasureFunction[Source], ...]
    bounded: bool = True
    certain: bool = True
    recurs: bool = True
    most: float | None = None
    factor: float | None = None
    """How many times as fast the advised change makes the step at most, if that is less than the cost allows."""

    def __post_init__(self) -> None:
        """Limits the cost to a share of the window."""
        object.__setattr__(self, "cost_share", share_between(self.cost_share))
        if self.most is not None:
            object.__setattr__(self, "most", share_between(max(self.most, self.cost_share)))


@dataclass(frozen=True)
class Judgement(Generic[Source]):
    """The result of a rule.

    `recoverable` is the largest share of the window that fixing the regime could recover. `missing` names the signals
    that the rule lacks when it abstains. `sets_pace` is True if the regime waits for something that takes its own time:
    a shorter step then waits longer. `doubtful` is the share that was seen, and may not recur: it may name the run, and
    makes no severity.
    """

    status: str
    share: float
    recoverable: float = 0.0
    causes: tuple[Cause[Source], ...] = ()
    evidence: tuple[MeasureFunction[Source], ...] = ()
    missing: str = ""
    sets_pace: bool = False
    doubtful: float = 0.0

    def __post_init__(self) -> None:
        """Limits both numbers to shares of the window."""
        object.__setattr__(self, "share", share_between(self.share))
        object.__setattr__(self, "recoverable", share_between(self.recoverable))


@dataclass(frozen=True)
class Rule(Generic[Source]):
    """A regime, the function that judges it, and the share of the window from which it fires."""

    regime: Regime
    judge: Callable[[Measures[Source]], Judgement[Source]]
    fires_at: float


@dataclass(frozen=True)
class Verdict(Generic[Source]):
    """A judged regime with the measures that the judgement rests on, by key."""

    regime: Regime
    judgement: Judgement[Source]
    facts: dict[str, Measure | Missing] = field(default_factory=dict)


AnyCause = Cause[Any]
AnyVerdict = Verdict[Any]
"""For report builders: they take no measures, so the evidence source does not matter."""


def idle_judgement(
    measures: Measures[Source],
    regime: Regime,
    fires_at: float,
    causes: Callable[[Measures[Source]], tuple[Cause[Source], ...]],
    recoverable: float = 1.0,
    seen_by: MeasureFunction[Source] | None = None,
) -> Judgement[Source]:
    """Returns the judgement of a regime in which the device does not compute. It fires by its share of the account.

    Args:
        measures: the measures of the recording.
        regime: the regime to judge.
        fires_at: the share of the window from which the regime fires.
        causes: names the causes; called only if the regime fires.
        recoverable: the part of the regime's share that a fix could recover.
        seen_by: the measure that the regime's time cannot be seen without. If it is missing, a low share proves
            nothing, and the rule abstains.
    """
    share = measures.account.share(regime)
    if share < fires_at:
        signal = measures(seen_by) if seen_by is not None else None
        if isinstance(signal, Missing):
            return Judgement(ABSTAINS, share, share * recoverable, missing=signal.because)
        return Judgement(CLEAR, share, share * recoverable)
    return Judgement(FIRES, share, share * recoverable, causes(measures))
