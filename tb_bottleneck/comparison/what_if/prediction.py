"""Predicts a run under changed conditions: its time, the time by regime, and what to fix first."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.base.measure import Missing, replace
from tb_bottleneck.base.regime import REGIMES, Owner, Regime
from tb_bottleneck.base.units import duration_text, share_text
from tb_bottleneck.bottlenecks.input.worker_number import worker_number
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.comparison.devices.kernel_scaling import loader_assumptions, worker_throughput_limit
from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun
from tb_bottleneck.comparison.texts.value_text import SAME_SPEED_WITHIN, ratio_text, speedup_range_text
from tb_bottleneck.comparison.waterfall import waterfall
from tb_bottleneck.comparison.what_if.batch_size import change_batch_size
from tb_bottleneck.comparison.what_if.hardware import (
    change_device,
    change_link,
    device_pair_to,
    slot_assumptions,
    with_link,
)
from tb_bottleneck.comparison.what_if.outcome import (
    add_peak_memory,
    baseline_of,
    device_bound,
    gain_of_changes,
    noise_of,
    outcome_of,
)
from tb_bottleneck.comparison.what_if.precision import change_precision
from tb_bottleneck.knowledge.comparison_texts import what_if_text
from tb_bottleneck.measures.batch_size import batch_size_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import CannotPredict, ParameterScenario, Scenario
from tb_bottleneck.report.builders.gains import why_not_trusted
from tb_bottleneck.report.digest import health_notes
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.version import SCHEMA

# A regime with a smaller share of the step after the change does not limit the gain of the change.
MIN_FIX_SHARE = 0.05
# Fixes cannot address the device's own work or unexplained time.
FIXABLE_REGIMES = tuple(regime for regime in REGIMES if regime.owner in (Owner.HOST, Owner.LINK))


@dataclass(frozen=True)
class WhatIfOptions:
    """The changed conditions of a prediction; None means unchanged.

    `device` is the name of a listed or calibrated device (device_named). `workers` is the number of loader workers,
    `batch` the number of samples per step. `precision` is one of precision.PRECISIONS. `link` is the PCIe link between
    host and device, for example "gen4x16".
    """

    device: str | None = None
    workers: int | None = None
    batch: int | None = None
    precision: str | None = None
    link: str | None = None


def what_if(run: JudgedRun | UnjudgedRun, options: WhatIfOptions) -> pb.WhatIf:
    """Predicts the step of `run` under the conditions `options`. If this is not possible, the notes of the result say
    why.

    Raises:
        NotFound: no change is requested, or the device or the link is not listed.
    """
    prediction = pb.WhatIf(schema=SCHEMA, run=run.name, per="step")
    if isinstance(run, UnjudgedRun):
        prediction.notes.extend(run.because)
        prediction.headline = what_if_text("refused").safe_substitute(because=" ".join(run.because[:1]))
        return prediction
    if not isinstance(run, ComparedRun):
        because = what_if_text("report_only").safe_substitute()
        prediction.notes.append(because)
        prediction.headline = what_if_text("refused").safe_substitute(because=because)
        return prediction
    prediction.step_ns = run.step_ns
    prediction.notes.extend(health_notes(run.report))
    if run.report.unprofiled.sentence:
        prediction.notes.append(run.report.unprofiled.sentence)
    add_peak_memory(prediction, run.recording, device=options.device, batch=options.batch, precision=options.precision)
    predictor = ReplayPredictor(run.recording, run.step_bounds)
    try:
        changes = _changes(run, options)
        if not predictor.base.check.trusted:
            raise CannotPredict(why_not_trusted(predictor.base.check))
    except CannotPredict as error:
        prediction.notes.append(str(error))
        prediction.headline = what_if_text("refused").safe_substitute(because=str(error))
        return prediction
    prediction.changes.extend(change.clause for change in changes)
    prediction.assumptions.extend(line for change in changes for line in change.assumptions)
    if options.workers is None and options.batch is None:
        prediction.assumptions.extend(loader_assumptions(run.recording))
        changes.append(ParameterScenario("worker_limit", partial(_with_worker_limit, run.recording)))
    _predict(prediction, run, predictor, changes)
    return prediction


def _with_worker_limit(recording: Recording, graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Returns `graph` with steps that are not shorter than the current loader workers allow."""
    limit = worker_throughput_limit(recording, estimate)
    return graph if limit is None else limit(graph)


def _changes(run: ComparedRun, options: WhatIfOptions) -> list[ParameterScenario]:
    """Returns the changes that `options` request.

    Raises:
        NotFound: no change is requested, or the device or the link is not listed.
        CannotPredict: a change cannot be predicted from this recording.
    """
    recording = run.recording
    changes = []
    devices = device_pair_to(recording, options.device) if options.device is not None else None
    if devices is not None and options.link is not None:
        changes.append(change_device(recording, with_link(recording, devices, options.link)))
    elif devices is not None:
        change = change_device(recording, devices)
        changes.append(replace(change, assumptions=(*change.assumptions, *slot_assumptions(recording, devices))))
    if options.precision is not None:
        changes.append(change_precision(recording, options.precision, devices))
    if options.link is not None:
        changes.append(change_link(recording, options.link, devices.b if devices is not None else None))
    if options.batch is not None:
        changes.append(change_batch_size(recording, options.batch))
    if options.workers is not None:
        changes.append(worker_number(recording, options.workers))
    if not changes:
        raise NotFound("no change given; use --device, --workers, --batch, --precision or --link")
    return changes


def _predict(
    prediction: pb.WhatIf, run: ComparedRun, predictor: ReplayPredictor, changes: Sequence[ParameterScenario]
) -> None:
    """Adds the predicted step with all `changes` together to `prediction`: time, gain, regimes, fixes and headline."""
    baseline = baseline_of(predictor)
    host = baseline.host.expected
    outcomes = {estimate: outcome_of(predictor, changes, estimate, host) for estimate in Estimate}
    samples = float(np.prod([change.samples for change in changes]))
    samples_now = batch_size_of(run.recording)
    size = 1.0 if samples == 1 or isinstance(samples_now, Missing) else float(samples_now.samples)
    prediction.per = "step" if size == 1.0 and samples == 1 else "sample"
    prediction.step_ns = run.step_ns / size * baseline.step.step_ns / run.rank_ns
    # The prediction is for the replayed rank. It is scaled to all ranks by (mean step time of all ranks / that of this
    # rank).
    scale = run.step_ns / run.rank_ns / (size * samples)
    expected = outcomes[Estimate.EXPECTED]
    after = {regime: expected.ns[regime] * scale for regime in REGIMES}
    before = {regime: baseline.step.ns[regime] * scale * samples for regime in REGIMES}
    step = sum(after.values())
    if not all(outcome.step_ns > 0 for outcome in outcomes.values()) or step <= 0:
        because = what_if_text("no_time").safe_substitute()
        prediction.notes.append(because)
        prediction.headline = what_if_text("refused").safe_substitute(because=because)
        return
    unexplained = expected.ns[Regime.UNEXPLAINED]
    if unexplained >= MIN_FIX_SHARE * expected.step_ns:
        share = share_text(unexplained * scale / step)
        prediction.assumptions.append(what_if_text("unexplained").safe_substitute(share=share))
    if baseline.host.least < 1.0:
        guessed = "host_estimated" if host < 1.0 else "host_as_recorded"
        name = "host_paced" if baseline.host.pace else "host_measured" if baseline.host.solved else guessed
        prediction.assumptions.append(what_if_text(name).safe_substitute(scale=share_text(host)))
    gain = gain_of_changes(run, predictor, changes, outcomes, samples, baseline)
    least = min(device_bound(outcomes) * scale / (1 + noise_of(run)), step)
    speedup = prediction.step_ns / step
    high = speedup * gain.high / gain.expected
    prediction.after.MergeFrom(
        pb.Prediction(
            step_ns=step,
            speedup=speedup,
            low=speedup * gain.low / gain.expected,
            high=min(high, prediction.step_ns / least) if least else high,
        )
    )
    prediction.by_regime.extend(waterfall(before, after))
    prediction.regime, prediction.basis = max(after, key=lambda regime: after[regime]), "replay"
    if prediction.after.speedup > 1 - SAME_SPEED_WITHIN:  # a change that slows the run needs no fixes
        _add_fixes(prediction, run, after, [change.fix for change in changes])
    prediction.headline = _headline(prediction, run, after, host < 1.0)


def _add_fixes(
    prediction: pb.WhatIf, run: ComparedRun, after: dict[Regime, float], fixes: Sequence[Scenario | None]
) -> None:
    """Adds to `fix_first` the fixable regimes that would have at least MIN_FIX_SHARE of the step after the change. A
    regime is named by its costliest cause, if one was found.

    `after` has the predicted time by regime in ns. Causes whose scenario is in `fixes` are left out, because the change
    itself fixes them.
    """
    fixed = {cause for cause, scenario in scenarios().items() if scenario in fixes}
    others = [finding for finding in run.findings if finding.cause not in fixed]
    step = sum(after.values())
    for regime in sorted(after, key=lambda regime: -after[regime]):
        share = after[regime] / step
        if regime not in FIXABLE_REGIMES or share < MIN_FIX_SHARE:
            continue
        finding = next((finding for finding in others if finding.regime == regime), None)
        title = finding.title if finding is not None else Regime(regime).label
        prediction.fix_first.add(cause=finding.cause if finding is not None else regime, title=title, share=share)


def _headline(prediction: pb.WhatIf, run: ComparedRun, by_regime: dict[Regime, float], corrected: bool) -> str:
    """Returns the headline of a prediction. `by_regime` has the predicted times in ns. `corrected` is True if the
    profiler overhead was removed from the recorded host time."""
    now, after = duration_text(prediction.step_ns), prediction.after
    # If a step time without a profiler is known, the report shows that time first. A prediction without the correction
    # is based on the recorded steps instead, so the headline says "recorded".
    per = f"recorded {prediction.per}" if run.report.HasField("unprofiled") and not corrected else prediction.per
    values = {
        "changes": " and ".join(prediction.changes),
        "per": per,
        "time": duration_text(after.step_ns),
        "now": now,
        "speedup": speedup_range_text(after.speedup, after.low, after.high),
        "low": ratio_text(after.low),
        "high": ratio_text(after.high),
    }
    name = "headline" if abs(after.speedup - 1) >= SAME_SPEED_WITHIN else "same" if values["time"] == now else "nearly"
    return what_if_text(name).safe_substitute(values) + _owner(prediction, by_regime)


def _owner(prediction: pb.WhatIf, by_regime: dict[Regime, float]) -> str:
    """Returns a text with the regime that would have most of the step, and the fixable regime that limits the gain of
    the change, if it has more than LIMITING_REGIME_FROM of the step. `by_regime` has the predicted times in ns."""
    step = sum(by_regime.values())
    values = {
        "title": Regime(prediction.regime).label_within,
        "share": share_text(by_regime[Regime(prediction.regime)] / step),
    }
    if not prediction.fix_first or prediction.fix_first[0].share <= LIMITING_REGIME_FROM:
        return what_if_text("main").safe_substitute(values)
    first = prediction.fix_first[0]
    other = max((regime for regime in by_regime if regime in FIXABLE_REGIMES), key=lambda regime: by_regime[regime])
    values |= {"other": Regime(other).label_within, "other_share": share_text(first.share)}
    sentence = what_if_text("limited" if other == prediction.regime else "limited_by_other").safe_substitute(values)
    return sentence + ("" if first.cause == other else what_if_text("fix_first").safe_substitute(cause=first.title))


# A fixable regime limits the gain of the change if it has more than this share of the step.
LIMITING_REGIME_FROM = 0.25
