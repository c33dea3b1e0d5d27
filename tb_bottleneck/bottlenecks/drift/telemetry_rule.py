"""drift by telemetry: longer and longer steps, a cause of the regime whose part of the step grows most.

Signal: the time of steps that repeats, without interruptions, starts of epochs and waits for a core.
Formula: the time by which steps exceed the median step of the first twelfth of the steps / the judged time.
Threshold: the cause is named if the median step grows by a factor of 1.3 or more from the first to the last third of
the time. The cause counts for the verdict if it costs a tenth of the time or more, as every cause.
Steps that become longer within each epoch, as with data that is sorted by length, are reported without a cost.
Source: 1.3 is the change from which on the monitor records again (monitor/capture/change_detector.py). Longer work on
the device may be intended, as with longer sequences, so the time is not known to be recoverable.
"""

from dataclasses import replace

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.drift.facts import (
    GROWS,
    drift_shape,
    growing_parts,
    growth_cost,
    growth_within_epochs,
    largest_growth,
    samples_over_run,
    step_time_over_run,
)
from tb_bottleneck.bottlenecks.interruption.telemetry_facts import epoch_length
from tb_bottleneck.bottlenecks.rule_types import FIRES, WORTH_RECOVERING, Cause, Verdict
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording

UNNAMED = "host_python"
"""The cause that stands for time outside the phases without a known cause. A growth replaces this cause."""
_EVIDENCE = (step_time_over_run, drift_shape, growing_parts, samples_over_run)
_REGIME = {"loader_wait": Regime.INPUT, "transfer": Regime.TRANSFER, "outside": Regime.HOST}


def with_drift(
    verdicts: tuple[Verdict[TelemetryRecording], ...], measures: Measures[TelemetryRecording]
) -> tuple[Verdict[TelemetryRecording], ...]:
    """Returns the verdicts with the cause `growing_steps` as the first cause of one regime: the regime whose part of
    the step grows most over the run.

    If steps do not grow over the run but within each epoch, the cause `growing_within_epochs` is added to `compute`. If
    steps grow in neither way, the verdicts are unchanged.
    """
    cost, part = measures(growth_cost), measures(largest_growth)
    if isinstance(cost, Missing):
        return _within_epochs(verdicts, measures)
    regime = _REGIME.get(part.text, Regime.COMPUTE) if isinstance(part, Measure) else Regime.HOST
    intended = regime is Regime.COMPUTE and measures.on_device
    cause = Cause("growing_steps", cost.value, _EVIDENCE, certain=not intended)
    return tuple(_with_cause(verdict, cause, measures) if verdict.regime is regime else verdict for verdict in verdicts)


def _within_epochs(
    verdicts: tuple[Verdict[TelemetryRecording], ...], measures: Measures[TelemetryRecording]
) -> tuple[Verdict[TelemetryRecording], ...]:
    """Returns the verdicts. If steps grow within each epoch at least by the factor GROWS, `compute` gets the cause
    `growing_within_epochs`, without a cost."""
    factor = measures(growth_within_epochs)
    if isinstance(factor, Missing) or factor.value < GROWS:
        return verdicts
    cause = Cause("growing_within_epochs", 0.0, (growth_within_epochs, epoch_length), bounded=False, certain=False)
    return tuple(
        _with_cause(verdict, cause, measures) if verdict.regime is Regime.COMPUTE else verdict for verdict in verdicts
    )


def _with_cause(
    verdict: Verdict[TelemetryRecording], cause: Cause[TelemetryRecording], measures: Measures[TelemetryRecording]
) -> Verdict[TelemetryRecording]:
    """Returns the verdict with `cause` as its first cause, and without the cause UNNAMED.

    The share is raised to the cost of `cause` if the cost is higher. If `cause` is certain, the recoverable share (see
    Judgement) is raised in the same way. The status becomes `fires` if the cost is at least WORTH_RECOVERING.
    """
    judgement = verdict.judgement
    recoverable = max(judgement.recoverable, cause.cost_share if cause.certain else 0.0)
    fires = cause.cost_share >= WORTH_RECOVERING
    return replace(
        verdict,
        judgement=replace(
            judgement,
            status=FIRES if fires else judgement.status,
            share=max(judgement.share, cause.cost_share),
            recoverable=recoverable,
            causes=(cause, *(other for other in judgement.causes if other.name != UNNAMED)),
        ),
        facts={**verdict.facts, **{measure.__name__: measures(measure) for measure in cause.evidence}},
    )
