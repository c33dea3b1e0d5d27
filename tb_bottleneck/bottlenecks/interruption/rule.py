"""interruption: the device is idle while the host does work that is not part of every step.

Signal: idle device time inside checkpointing, logging, evaluation, garbage collection, or code that runs for the first
time.
Formula: that time / the window. First runs in one step only, or in a recording without steps, are a start-up: they are
shown, but none of their time is recoverable.
Threshold: fires at 5 % of the window; abstains below it if Python frames were not recorded, since most interruptions
are visible only in frames.
Source: half of traceml's warning level for overheads, 10 % of the step (diagnostics/step_time/policy.py): an
interruption is one call, and worth reporting earlier.
"""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.interruption.facts import (
    checkpoints,
    costliest_interruption,
    evaluations,
    first_runs,
    first_runs_once,
    garbage_collections,
    interrupted_step,
    interruption_time,
    log_writes,
    steps_between_interruptions,
    usual_step,
)
from tb_bottleneck.bottlenecks.launch.compiled_steps import recompiled_functions
from tb_bottleneck.bottlenecks.rule_types import Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.uneven_steps import interruption_limit

FIRES_AT = 0.05
# A suspect with less than a quarter of the interruption time is not the cause; as for kinds of waits.
MIN_SUSPECT_SHARE = 0.25

SUSPECTS: dict[str, MeasureFunction[Recording]] = {
    "checkpointing": checkpoints,
    "evaluation": evaluations,
    "logging": log_writes,
    "garbage_collection": garbage_collections,
    "first_runs": first_runs,
}
"""By name of the cause: the measure of its time."""


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `interruption` for a trace. The costliest of SUSPECTS is a cause if it exceeds
    MIN_SUSPECT_SHARE of the time of all interruptions. Otherwise the cause is `other_interruption`."""
    return idle_judgement(measures, Regime.INTERRUPTION, FIRES_AT, _causes, _recoverable(measures), seen_by=checkpoints)


def _recoverable(measures: Measures[Recording]) -> float:
    """Returns the part (0 to 1) of the regime's share that may occur again in later steps. First runs in one step only
    are a start-up, and are not included."""
    share = measures.account.share(Regime.INTERRUPTION)
    return 1 - min(measures.value(first_runs_once, otherwise=0.0) / share, 1.0) if share else 1.0


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns the costliest suspect and, if first runs occurred in one step only, the start-up; the costliest first.
    The second cause is left out if it costs less than FIRES_AT."""
    share = measures.account.share(Regime.INTERRUPTION)
    once = min(measures.value(first_runs_once, otherwise=0.0), share)
    recurring = _recurring(measures, share - once)
    if not once:
        return (recurring,)
    start = Cause("start_up", once, (first_runs, recompiled_functions), bounded=False, recurs=False)
    first, second = sorted((recurring, start), key=lambda cause: -cause.cost_share)
    return (first, second) if second.cost_share >= FIRES_AT else (first,)


def _recurring(measures: Measures[Recording], share: float) -> Cause[Recording]:
    """Returns the cause of the interruptions that may occur again. `share` is their share of the window."""
    once = measures.value(first_runs_once, otherwise=0.0) > 0
    suspects = {name: measure for name, measure in SUSPECTS.items() if not (once and measure is first_runs)}
    costs = {name: measures.value(measure, otherwise=0.0) for name, measure in suspects.items()}
    name = max(costs, key=lambda suspect: costs[suspect])
    period = (costliest_interruption, steps_between_interruptions, usual_step, interrupted_step)
    if costs[name] <= MIN_SUSPECT_SHARE * measures.value(interruption_time, otherwise=0.0):
        return Cause("other_interruption", share, period)
    if name == "first_runs":
        # Not bounded on the CPU: there the first call of compiled code, which loads it, looks like an operator's work.
        return Cause(name, share, (first_runs, recompiled_functions), bounded=measures.on_device)
    return Cause(name, share, (SUSPECTS[name], *period))


RULE = Rule(Regime.INTERRUPTION, judge, FIRES_AT, interruption_limit)
