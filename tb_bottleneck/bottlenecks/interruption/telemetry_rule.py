"""interruption by telemetry: steps are much longer than their neighbours, and the device has no work.

Signal: steps more than three times as long as the median of their window, or every k-th step if it does the same work
in twice the time; the loader's wait and the device's own work are excluded. Host time in checkpoints, TensorBoard's
writer, garbage collections and evaluation. Times at which torch.compile compiles functions again.
Formula: (sum of the time by which these steps exceed the others, or sum of the recorded times if it is larger) / the
time of the steps.
Threshold: as for traces; a kind of interruption is a cause from 3 % of the time on (our choice; less is noise).
Abstains below 20 steps, and if it is not known whether the device works within a step, since an interruption in every
step would not show.
Source: bottlenecks/interruption/rule.py; three times the median is the limit for outliers in traces, too; 20 steps are
traceml's minimum for a confident verdict (diagnostics/step_time/policy.py).
"""

from tb_bottleneck.base.measure import Measure, Missing, known_value
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.pipeline import device_idle
from tb_bottleneck.bottlenecks.interruption.rule import FIRES_AT
from tb_bottleneck.bottlenecks.interruption.run_time import (
    compilations_counted,
    compiled_again_share,
    recompilations_seen,
    recompiling_time,
    share_in_compilation,
)
from tb_bottleneck.bottlenecks.interruption.telemetry_facts import (
    checkpoint_time,
    collection_time,
    evaluation_time,
    interruption_of_long_steps,
    logging_time,
    recorded_interruptions,
    steps_with_checkpoint,
    steps_with_logging,
)
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.host import (
    long_step_excess,
    long_step_period,
    long_steps,
    most_without_checkpoints,
    most_without_collections,
    most_without_evaluation,
    most_without_logging,
    step_time,
)

MIN_STEPS_TO_COMPARE = 20
MIN_KIND = 0.03
# A longer run spends less of its time on compiling; from this share on, compiling is what the run shows. A choice.
MOSTLY_COMPILES = 0.25
MOST_OF_STEPS = 0.99  # a step also trains; without any such time, its gain would be infinite
UNLOGGED = 0.14
"""Time of guards and first calls of new code / time of the logged compilations: the largest of five trainings (0.01 to
0.14; knowledge/measured_changes.toml)."""
MOST_BOUNDED = 0.9
"""Above this share, the rest of the step is too small to bound the gain, which is then estimated. A choice."""
_Function = MeasureFunction[TelemetryRecording]
_KINDS: dict[str, tuple[_Function, tuple[_Function, ...]]] = {
    "checkpointing": (most_without_checkpoints, (checkpoint_time, steps_with_checkpoint)),
    "logging": (most_without_logging, (logging_time, steps_with_logging)),
    "garbage_collection": (most_without_collections, (collection_time,)),
    "evaluation": (most_without_evaluation, (evaluation_time,)),
}
"""By cause whose time the monitor records: the measure of the largest share of time that a fix saves, and the measures
of the evidence. The first measure of the evidence is the cause's time per step."""

_COLUMNS = {"checkpointing": "checkpoint"} | {name: name for name in ("logging", "garbage_collection", "evaluation")}
"""A dict: cause -> the step column with its time."""

_RECOMPILATION = (recompiling_time, recompilations_seen, step_time)


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `interruption` for telemetry. A cause names the kind of interruption only if the monitor
    timed it. Abstains for fewer than MIN_STEPS_TO_COMPARE steps."""
    share = measures.account.share(Regime.INTERRUPTION)
    if measures.steps < MIN_STEPS_TO_COMPARE:
        return Judgement(
            ABSTAINS, share, missing=f"fewer than {MIN_STEPS_TO_COMPARE} steps are too few to recognise a long one"
        )
    compiled = _compilation(measures)
    if compiled is not None and compiled.cost_share > share:
        recoverable = compiled.cost_share if compiled.recurs else 0.0
        return Judgement(FIRES, compiled.cost_share, recoverable, (compiled,))
    if share < FIRES_AT:
        idle = measures(device_idle)
        if isinstance(idle, Missing):
            missing = f"each step may contain an interruption, and their parts are not known ({idle.because})"
            return Judgement(ABSTAINS, share, share, missing=missing)
        return Judgement(CLEAR, share, share)
    return Judgement(FIRES, share, share, _causes(measures, share))


def _compilation(measures: Measures[TelemetryRecording]) -> Cause[TelemetryRecording] | None:
    """Returns the cause `compilation`, or `recompilation` if functions are mostly compiled again. Returns None if both
    together take less than MOSTLY_COMPILES of the run, including its start."""
    again, all_of_it = measures.value(compiled_again_share, 0.0), measures.value(share_in_compilation, 0.0)
    if all_of_it < MOSTLY_COMPILES:
        return None
    if again >= all_of_it / 2:
        in_steps = min(measures.value(recompiling_time, 0.0) / measures.value(step_time, 1.0), MOST_OF_STEPS)
        evidence = (compiled_again_share, *_RECOMPILATION) if again > in_steps else _RECOMPILATION
        return _recompilation(max(again, in_steps), evidence)
    return Cause("compilation", all_of_it, (share_in_compilation, compilations_counted), bounded=False, recurs=False)


def _recompilation(share: float, evidence: tuple[_Function, ...]) -> Cause[TelemetryRecording]:
    """Returns the cause `recompilation`. `share` is the share of the time in logged compilations. Guards and first
    calls of new code are not logged; they take at most UNLOGGED times `share` more, so the upper bound is `share` *
    (1 + UNLOGGED)."""
    most = share * (1 + UNLOGGED)
    return Cause("recompilation", share, evidence, bounded=most <= MOST_BOUNDED, most=min(most, 1.0))


def _causes(measures: Measures[TelemetryRecording], share: float) -> tuple[Cause[TelemetryRecording], ...]:
    """Returns a cause for each recorded kind of interruption that costs at least MIN_KIND, and the cause
    `periodic_pauses` if much of the regime's time is left. If one kind is in the long steps only, the time that is left
    is added to the cost of this kind. `share` is the regime's share of the window."""
    wall, named = measures.value(step_time, 1.0), measures.value(recorded_interruptions, 0.0)
    again = min(measures.value(recompiling_time, 0.0) / wall, share - named)
    again = again if again >= MIN_KIND else 0.0
    rest, owner = share - named - again, measures(interruption_of_long_steps)
    causes = []
    for name, (most, evidence) in _KINDS.items():
        owns_rest = isinstance(owner, Measure) and owner.text == _COLUMNS[name]
        cost = min(measures.value(evidence[0], 0.0) / wall + (rest if owns_rest else 0.0), share)
        shown = (*evidence, long_step_excess, step_time) if owns_rest else (*evidence, step_time)
        if cost >= MIN_KIND:
            causes.append(Cause(name, cost, shown, most=known_value(measures(most))))
    if again:
        causes.append(_recompilation(again, _RECOMPILATION))
    if (rest >= FIRES_AT and isinstance(owner, Missing)) or not causes:
        seen = (long_steps, long_step_excess, long_step_period, step_time, recompilations_seen)
        causes.append(Cause("periodic_pauses", rest, seen))
    return tuple(causes)


RULE = Rule(Regime.INTERRUPTION, judge, FIRES_AT)
