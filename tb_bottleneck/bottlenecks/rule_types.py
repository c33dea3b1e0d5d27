"""The types of rules and of their results. A rule is a regime with the function that judges the regime."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from tb_bottleneck.base.measure import Measure, Missing, share_between
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures, Source

FIRES, CLEAR, ABSTAINS, BROKEN = "fires", "clear", "abstains", "broken"

# A regime with less recoverable time than this share is not the conclusion about the run; a regime of the device's own
# work is. traceml warns from 10 % of the step on (diagnostics/step_time/policy.py).
WORTH_RECOVERING = 0.10

MACHINE_CAUSES = frozenset({"contended_cores"})
"""Causes outside the training, in other programs on the machine. Users can often not remove them."""
COMPARABLE = 1 / 3
"""A cause of the program itself precedes a cause of the machine if its cost is at least this part of the machine's
cost. This value is a choice: on a shared machine, other programs were the main finding for 4 of 19 trainings that also
had a cause of their own."""


@dataclass(frozen=True)
class Cause(Generic[Source]):
    """A reason why a regime owns time, with its own fix.

    `name` is the id of the cause (docs/causes.md lists all). `cost_share` is the share of the window (0 to 1) that the
    cause costs. `evidence` are the measures that show the cause. `bounded` is True if removing the cause saves at most
    `cost_share`, or, if `most` is given, at most `most`, because the other work of the step becomes faster too;
    otherwise no bound is stated. `certain` is False if the recording cannot show that a fix saves anything: the bound
    still holds, but less counts as recoverable. `recurs` is False if a run pays the cost once, at its start: a fix
    makes no later step faster, so nothing is recoverable.
    """

    name: str
    cost_share: float
    evidence: tuple[MeasureFunction[Source], ...]
    bounded: bool = True
    certain: bool = True
    recurs: bool = True
    most: float | None = None
    factor: float | None = None
    """Upper bound of the speed-up of the step by the advised change; None if only the cost limits the speed-up."""
    gain: tuple[float, float, float] | None = None
    """The gain that a model of the run predicts, as expected value, low and high end of its interval; None without a
    model. It takes the place of the bound."""
    also_fixes: frozenset[str] = frozenset()
    """Other causes that the fix of this cause also removes. The causes are reported as one finding."""

    def __post_init__(self) -> None:
        """Limits `cost_share` and `most` to 0 to 1, and `most` to at least `cost_share`."""
        object.__setattr__(self, "cost_share", share_between(self.cost_share))
        if self.most is not None:
            object.__setattr__(self, "most", share_between(max(self.most, self.cost_share)))


@dataclass(frozen=True)
class Judgement(Generic[Source]):
    """The result of a rule. All numbers are shares of the window (0 to 1).

    `status` is fires, clear, abstains or broken. `share` is the regime's time. `recoverable` is the largest share that
    a fix could save. `causes` are the reasons, and `evidence` are further measures to report. `missing` names the
    signals that the rule lacks if it abstains. `sets_pace` is True if the step waits for something with its own pace,
    so that a shorter step only waits longer. `doubtful` is time that was recorded but may not occur again: it counts
    when the main regime of the run is chosen, but not in the severity.
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
        """Limits `share` and `recoverable` to 0 to 1."""
        object.__setattr__(self, "share", share_between(self.share))
        object.__setattr__(self, "recoverable", share_between(self.recoverable))


@dataclass(frozen=True)
class Rule(Generic[Source]):
    """A regime, the function that judges the regime, and the share of the window (0 to 1) from which the rule fires.

    `limit` is the measure of the regime's largest recoverable share of the window, for a regime that may be in some
    steps only: it is computed from the steps that do not have this regime."""

    regime: Regime
    judge: Callable[[Measures[Source]], Judgement[Source]]
    fires_at: float
    limit: MeasureFunction[Source] | None = None


@dataclass(frozen=True)
class Verdict(Generic[Source]):
    """A regime with its judgement. `facts` maps the key of each measure of the evidence to its result."""

    regime: Regime
    judgement: Judgement[Source]
    facts: dict[str, Measure | Missing] = field(default_factory=dict)


AnyCause = Cause[Any]
AnyVerdict = Verdict[Any]
"""Verdict of any evidence source, for report builders, which take no measures."""


def idle_judgement(
    measures: Measures[Source],
    regime: Regime,
    fires_at: float,
    causes: Callable[[Measures[Source]], tuple[Cause[Source], ...]],
    recoverable: float = 1.0,
    seen_by: MeasureFunction[Source] | None = None,
) -> Judgement[Source]:
    """Returns the judgement of a regime in which the device does not compute. The rule fires if the regime owns at
    least the share `fires_at` of the window.

    Args:
        measures: the measures of the recording.
        regime: the regime to judge.
        fires_at: the share of the window (0 to 1) from which the rule fires.
        causes: returns the causes; called only if the rule fires.
        recoverable: the part (0 to 1) of the regime's share that a fix could save.
        seen_by: the measure without which the regime's time is not visible. If this measure is missing, a share below
            `fires_at` proves nothing, and the rule abstains.
    """
    share = measures.account.share(regime)
    if share < fires_at:
        signal = measures(seen_by) if seen_by is not None else None
        if isinstance(signal, Missing):
            return Judgement(ABSTAINS, share, share * recoverable, missing=signal.because)
        return Judgement(CLEAR, share, share * recoverable)
    return Judgement(FIRES, share, share * recoverable, causes(measures))
