"""A run under other conditions, as it is expected to go: its time, who owns it then, and what to mend first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.expected_time import PREDICTION_ERROR, host_error
from tb_bottleneck.comparison.devices.loader_throughput import loader_assumptions, worker_throughput_limit
from tb_bottleneck.comparison.devices.replay_prediction import BY_REPLAY, PredictedStep, ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun
from tb_bottleneck.comparison.significance import mean_interval
from tb_bottleneck.comparison.texts.speedup import SAME_SPEED_WITHIN, ratio_text, speedup_range_text, speedup_text
from tb_bottleneck.comparison.waterfall import waterfall
from tb_bottleneck.comparison.what_if.changes.batch_size import change_batch_size
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.comparison.what_if.changes.device import change_device, device_pair_to, slot_assumptions
from tb_bottleneck.comparison.what_if.changes.loader_workers import change_workers
from tb_bottleneck.comparison.what_if.changes.pcie_link import change_link, with_link
from tb_bottleneck.comparison.what_if.changes.precision import change_precision
from tb_bottleneck.comparison.what_if.without_profiler import (
    SpeedupWithoutProfiler,
    device_bound,
    speedup_without_profiler,
)
from tb_bottleneck.comparison.workload.batch_size import batch_size_of
from tb_bottleneck.errors import NotFound
from tb_bottleneck.knowledge.comparison_texts import what_if_text
from tb_bottleneck.measure import Missing
from tb_bottleneck.regime import DEVICE_REGIMES, REGIMES, Regime
from tb_bottleneck.replay.host_scale import with_host_scale
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import duration_text, share_text

# A regime that owns less of the step after the change is not what the change would be wasted on.
MIN_FIX_SHARE = 0.05
# Without the profiler it is another answer from this much on: predictions are no better.
PROFILER_CHANGES_FROM = 0.1
NOT_MENDED = (*DEVICE_REGIMES, Regime.UNEXPLAINED)  # the device's own work, and what nobody can point at


@dataclass(frozen=True)
class WhatIfOptions:
    """What is asked for; None where it stays as it is."""

    device: str | None = None
    workers: int | None = None
    batch: int | None = None
    precision: str | None = None
    link: str | None = None


def what_if(run: JudgedRun | UnjudgedRun, asked: WhatIfOptions) -> pb.WhatIf:
    """The prediction; where none can be made, the notes say why.

    Raises:
        NotFound: the device that is asked for is not written down.
    """
    told = pb.WhatIf(schema=SCHEMA, run=run.name, per="step")
    if isinstance(run, UnjudgedRun):
        told.notes.extend(run.because)
        told.headline = what_if_text("refused").safe_substitute(because=" ".join(run.because[:1]))
        return told
    if not isinstance(run, ComparedRun):
        because = what_if_text("reported").safe_substitute()
        told.notes.append(because)
        told.headline = what_if_text("refused").safe_substitute(because=because)
        return told
    told.step_ns = run.step_ns
    told.notes.extend(reason.detail for reason in run.report.health.reasons)
    try:
        changes = _changes(run, asked)
    except CannotPredict as error:
        told.notes.append(str(error))
        told.headline = what_if_text("refused").safe_substitute(because=str(error))
        return told
    told.changes.extend(change.says for change in changes)
    told.assumptions.extend(line for change in changes for line in change.assumptions)
    if asked.workers is None and asked.batch is None:
        told.assumptions.extend(loader_assumptions(run.recording))
        changes.append(Change("", (), modify=partial(_paced, run.recording)))
    _predict(told, run, changes)
    return told


def _paced(recording: Recording, graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    paced = worker_throughput_limit(recording, estimate)
    return graph if paced is None else paced(graph)


def _changes(run: ComparedRun, asked: WhatIfOptions) -> list[Change]:
    recording = run.recording
    made = []
    move = device_pair_to(recording, asked.device) if asked.device is not None else None
    if move is not None and asked.link is not None:
        made.append(change_device(recording, with_link(recording, move, asked.link)))
    elif move is not None:
        moved = change_device(recording, move)
        made.append(replace(moved, assumptions=(*moved.assumptions, *slot_assumptions(recording, move))))
    if asked.precision is not None:
        made.append(change_precision(recording, asked.precision, move))
    if asked.link is not None:
        made.append(change_link(recording, asked.link, move.b if move is not None else None))
    if asked.batch is not None:
        made.append(change_batch_size(recording, asked.batch))
    if asked.workers is not None:
        made.append(change_workers(recording, asked.workers))
    if not made:
        raise NotFound("what if what? say --device, --workers, --batch, --precision or --link")
    return made


def _predict(told: pb.WhatIf, run: ComparedRun, changes: Sequence[Change]) -> None:
    engine = ReplayPredictor(run.recording)
    found = {estimate: _outcome(engine, changes, estimate) for estimate in Estimate}
    samples = float(np.prod([change.samples for change in changes]))
    now = batch_size_of(run.recording)
    size = 1.0 if samples == 1 or isinstance(now, Missing) else float(now.samples)
    told.per = "step" if size == 1.0 and samples == 1 else "sample"
    told.step_ns = run.step_ns / size
    # What is predicted is of the rank that was replayed; the recording's own times say how it compares.
    whole = sum(run.recording.account.ns.values()) / len(run.recording.steps)
    scale = run.step_ns / whole / (size * samples)
    expected = found[Estimate.EXPECTED]
    after = {regime: expected.ns[regime] * scale for regime in REGIMES}
    before = {regime: run.ns[regime] / size for regime in REGIMES}
    step = sum(after.values())
    noise = max(_noise(run), host_error(run.recording) if expected.basis == BY_REPLAY else PREDICTION_ERROR)
    slower = max([noise, *(change.slower for change in changes)])
    untold = expected.ns[Regime.UNEXPLAINED]  # at worst it grows with the samples
    slow = (max(one.step_ns for one in found.values()) + untold * max(samples - 1, 0.0)) * scale * (1 + slower)
    if untold >= MIN_FIX_SHARE * expected.step_ns:
        share = share_text(untold * scale / step)
        told.assumptions.append(what_if_text("untold").safe_substitute(share=share))
    least = device_bound(found) * scale / (1 + _noise(run))
    fast = max(min(one.step_ns for one in found.values()) * scale / (1 + noise), min(least, step))
    free = speedup_without_profiler(engine, partial(_outcome, engine, changes), slower, noise)
    low = min([told.step_ns / slow, *([] if free is None else [free.low * samples])])
    high = max([told.step_ns / fast, *([] if free is None else [free.high * samples])])
    told.after.MergeFrom(pb.Prediction(step_ns=step, speedup=told.step_ns / step, low=low, high=high))
    told.by_regime.extend(waterfall(before, after))
    told.regime, told.basis = max(after, key=lambda one: after[one]), expected.basis
    if expected.basis != BY_REPLAY:
        told.notes.append(what_if_text("account").safe_substitute())
    if told.after.speedup > 1 - SAME_SPEED_WITHIN:  # nobody makes a loss on purpose, to be kept from it
        _tell_fixes(told, run, after)
    told.headline = _headline(told, after) + _without_profiler(told, free, samples)


def _without_profiler(told: pb.WhatIf, free: SpeedupWithoutProfiler | None, samples: float) -> str:
    """What it comes to without the profiler, where that is another answer."""
    if free is None or abs(log(free.expected * samples / told.after.speedup)) < log(1 + PROFILER_CHANGES_FROM):
        return ""
    word = "unburdened" if free.measured else "unburdened_at_most"
    return what_if_text(word).safe_substitute(pace=speedup_text(free.expected * samples))


def _outcome(
    engine: ReplayPredictor, changes: Sequence[Change], estimate: Estimate, host: float = 1.0
) -> PredictedStep:
    """All changes at once, on a host that takes so many times as long as recorded to dispatch."""
    recording = engine.recording
    ops = recording.trace.device_ops
    lengths: Floats = (ops.end - ops.start).astype(np.float64)
    for change in changes:
        if change.factors is not None:
            lengths = lengths * change.factors(estimate)

    def modify(start: ModifiedGraph) -> ModifiedGraph:
        start = with_host_scale(start, host)
        for change in changes:
            start = start if change.modify is None else change.modify(start, estimate)
        return start

    touched = any(change.factors is not None for change in changes) and recording.on_device
    roofs = next((change.roofs for change in changes if change.roofs is not None), None)
    return engine.predict(lengths if touched else None, modify, roofs)


def _noise(run: ComparedRun) -> float:
    """Half the 95 % interval of the recording's own mean step time, as a share of it."""
    low, high = mean_interval(run.durations)
    return (high - low) / 2 / max(float(np.mean(run.durations)), 1.0)


def _tell_fixes(told: pb.WhatIf, run: ComparedRun, after: dict[Regime, float]) -> None:
    """What would own the step beside the device's own work: by the causes found, else by its regime."""
    step = sum(after.values())
    for regime in sorted(after, key=lambda one: -after[one]):
        share = after[regime] / step
        if regime in NOT_MENDED or share < MIN_FIX_SHARE:
            continue
        found = next((finding for finding in run.findings if finding.regime == regime), None)
        title = found.title if found is not None else Regime(regime).label
        told.fix_first.add(cause=found.cause if found is not None else regime, title=title, share=share)


def _headline(told: pb.WhatIf, after: dict[Regime, float]) -> str:
    now, found = duration_text(told.step_ns), told.after
    said = {
        "changes": " and ".join(told.changes),
        "per": told.per,
        "time": duration_text(found.step_ns),
        "now": now,
        "pace": speedup_range_text(found.speedup, found.low, found.high),
        "low": ratio_text(found.low),
        "high": ratio_text(found.high),
    }
    word = "headline" if abs(found.speedup - 1) >= SAME_SPEED_WITHIN else "same" if said["time"] == now else "nearly"
    return what_if_text(word).safe_substitute(said) + _owner(told, after)


def _owner(told: pb.WhatIf, after: dict[Regime, float]) -> str:
    """What owns most of the step then, and what beside the device's own work holds the change back."""
    step = sum(after.values())
    said = {"title": Regime(told.regime).label.lower(), "share": share_text(after[Regime(told.regime)] / step)}
    if not told.fix_first or told.fix_first[0].share <= LIMITING_REGIME_FROM:
        return what_if_text("owns").safe_substitute(said)
    first = told.fix_first[0]
    other = max((regime for regime in after if regime not in NOT_MENDED), key=lambda one: after[one])
    said |= {"other": Regime(other).label.lower(), "other_share": share_text(first.share)}
    sentence = what_if_text("held" if other == told.regime else "held_beside").safe_substitute(said)
    return sentence + ("" if first.cause == other else what_if_text("mend").safe_substitute(cause=first.title))


# Where something beside the device's own work would own this much of the step, it is what limits the change.
LIMITING_REGIME_FROM = 0.25
