"""Compares two runs A and B: similarity of the work, time by regime (kind of time), expected time of A's work on B's
device, and the shortfall, which is B's measured time minus this expected time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import duration_text
from tb_bottleneck.comparison.devices.expected_time import device_pair_of, expected_time
from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor
from tb_bottleneck.comparison.devices.shortfall import shortfall_between, shortfall_parts
from tb_bottleneck.comparison.run_difference import run_difference
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, Progress, UnjudgedRun, judge_run
from tb_bottleneck.comparison.runs.runs_from_reports import on_common_basis
from tb_bottleneck.comparison.significance import difference, undisturbed
from tb_bottleneck.comparison.texts.headline import headline_of, may_be_same_work, refusal_headline
from tb_bottleneck.comparison.waterfall import unprofiled_difference, waterfall
from tb_bottleneck.comparison.workload.environment import environment_differences
from tb_bottleneck.comparison.workload.operator_time import memory_rows
from tb_bottleneck.comparison.workload.similarity import similarity
from tb_bottleneck.knowledge.comparison_texts import headline_text
from tb_bottleneck.measures.batch_size import LOSS_ROWS, SamplesPerStep, batch_size_of
from tb_bottleneck.report.builders.gains import why_not_trusted
from tb_bottleneck.report.digest import health_notes
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.version import SCHEMA


@dataclass(frozen=True)
class TimeUnit:
    """The unit of compared times. `per` is "step", or "sample" if the batch sizes differ.

    `a` and `b` are the divisors that convert step times of A and B to this unit: the samples per step of each run if
    `per` is "sample", otherwise 1.
    """

    per: str
    a: int = 1
    b: int = 1


def compare(
    a: str | Sequence[str],
    b: str | Sequence[str],
    names: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> pb.Comparison:
    """Reads, judges and compares two runs. `a` and `b` are the path of a recording, or the paths of the recordings of
    all ranks.

    Always returns a comparison. If a run gets no verdict, `comparable` is False, and `notes` say why. `names` are the
    names of the runs in the texts, by default their first paths. `progress` is called with the finished and the total
    amount of work while a recording is read.
    """
    paths = [[run] if isinstance(run, str) else list(run) for run in (a, b)]
    run_names = names or (paths[0][0], paths[1][0])
    return compare_runs(*(judge_run(name, files, progress) for name, files in zip(run_names, paths, strict=True)))


def compare_runs(a: JudgedRun | UnjudgedRun, b: JudgedRun | UnjudgedRun) -> pb.Comparison:
    """Compares two runs. If a run is known only from reports, less is compared (runs/report_comparison.py).

    If a run has no verdict, or if one of them has only a trace and the other only telemetry, `comparable` is False, and
    `notes` say why.
    """
    comparison = pb.Comparison(schema=SCHEMA, a=a.name, b=b.name, per="step", difference="unknown")
    if isinstance(a, UnjudgedRun) or isinstance(b, UnjudgedRun):
        comparison.notes.extend(reason for run in (a, b) if isinstance(run, UnjudgedRun) for reason in run.because)
        comparison.headline = refusal_headline(comparison.notes)
        return comparison
    by_telemetry = [run.from_telemetry for run in (a, b)]
    if by_telemetry[0] != by_telemetry[1]:
        letters = {"telemetry": "A", "trace": "B"} if by_telemetry[0] else {"telemetry": "B", "trace": "A"}
        timed = (b if by_telemetry[0] else a).by_telemetry()
        if timed is None:
            comparison.notes.append(headline_text("mixed").safe_substitute(letters))
            comparison.headline = refusal_headline(comparison.notes)
            return comparison
        a, b = (a, timed) if by_telemetry[0] else (timed, b)
        comparison.notes.append(headline_text("both_by_telemetry").safe_substitute(letters))
    comparison.comparable = True
    comparison.causes.gained.extend(cause for cause in b.causes if cause not in a.causes)
    comparison.causes.lost.extend(cause for cause in a.causes if cause not in b.causes)
    if not (isinstance(a, ComparedRun) and isinstance(b, ComparedRun)):
        _add_times(comparison, a, b, TimeUnit("step"))
        comparison.notes.extend([headline_text("report_only").safe_substitute(), *_health(a, b)])
        comparison.headline = headline_of(
            comparison,
            ranks=rank_counts(a, b),
            means=_mean_changes(a, b, TimeUnit("step")),
        )
        return comparison
    a, b, basis_note = on_common_basis(a, b)
    samples = batch_size_of(a.recording), batch_size_of(b.recording)
    unit = time_unit_of(*samples)
    measured = similarity(a.recording, b.recording)
    if not isinstance(measured, Missing):
        comparison.similarity.MergeFrom(
            pb.Similarity(share=measured.share, same_work=measured.same_work, basis=measured.basis)
        )
    _add_batches(comparison, unit, *samples)
    _add_times(comparison, a, b, unit)
    comparison.notes.extend([] if basis_note is None else [basis_note])
    comparison.context.extend(environment_differences(a, b))
    comparison.context.extend(memory_rows(a.report, b.report))
    comparison.notes.extend([measured.because] if isinstance(measured, Missing) else [])
    comparison.notes.extend([*_stacks(a, b), *_health(a, b)])
    device = _add_expected(comparison, a, b, unit) if may_be_same_work(comparison) else None
    headline = headline_of(comparison, device, rank_counts(a, b), _mean_changes(a, b, unit))
    comparison.headline = headline + _on_cpu(a, b)
    return comparison


def _on_cpu(a: ComparedRun, b: ComparedRun) -> str:
    """Returns a sentence for the headline if one run used a device and the other only the CPU, otherwise an empty
    text."""
    if a.recording.on_device == b.recording.on_device:
        return ""
    letters = {"cpu": "B", "device": "A"} if a.recording.on_device else {"cpu": "A", "device": "B"}
    return headline_text("on_cpu").safe_substitute(letters)


def rank_counts(a: JudgedRun, b: JudgedRun) -> tuple[int, int] | None:
    """Returns the numbers of ranks of A and B if both are known and differ, otherwise None."""
    if not (a.report.HasField("world_size") and b.report.HasField("world_size")):
        return None
    counts = a.report.world_size, b.report.world_size
    return None if counts[0] == counts[1] else counts


def time_unit_of(a: SamplesPerStep | Missing, b: SamplesPerStep | Missing) -> TimeUnit:
    """Returns the unit "sample" if both batch sizes are known and differ, otherwise "step".

    A batch size that was counted as rows of the loss may count tokens or pixels instead of samples. Therefore, such a
    batch size is compared only with another number of loss rows; otherwise, the unit is "step".
    """
    if isinstance(a, Missing) or isinstance(b, Missing) or a.samples == b.samples:
        return TimeUnit("step")
    if a.basis.startswith(LOSS_ROWS) != b.basis.startswith(LOSS_ROWS):
        return TimeUnit("step")
    return TimeUnit("sample", a.samples, b.samples)


def _add_batches(
    comparison: pb.Comparison, unit: TimeUnit, a: SamplesPerStep | Missing, b: SamplesPerStep | Missing
) -> None:
    """Adds the batch sizes `a` and `b` and the unit of times to `comparison`. Adds a note if a batch size is missing,
    or if times are per sample because the batch sizes differ."""
    comparison.per = unit.per
    for batch, target in ((a, comparison.a_batch), (b, comparison.b_batch)):
        if not isinstance(batch, Missing):
            target.MergeFrom(pb.BatchSize(samples=batch.samples, basis=batch.basis))
    missing = next((batch.because for batch in (a, b) if isinstance(batch, Missing)), None)
    if missing is not None:
        comparison.notes.append(
            f"Times are per step, as if both runs had the same batch size. {missing[:1].upper()}{missing[1:]}."
        )
    elif unit.per == "sample":
        comparison.notes.append(
            f"Times are per sample, because the batch sizes differ: {unit.a} and {unit.b} samples per step."
        )


def _add_times(comparison: pb.Comparison, a: JudgedRun, b: JudgedRun, unit: TimeUnit) -> None:
    """Adds the times of both runs in `unit`, by regime and in total, and the test of their difference to
    `comparison`."""
    ns_a, ns_b = _per_unit(a.typical_ns, unit.a), _per_unit(b.typical_ns, unit.b)
    comparison.by_regime.extend(waterfall(ns_a, ns_b))
    comparison.a_ns, comparison.b_ns = sum(ns_a.values()), sum(ns_b.values())
    result = difference(a.durations / unit.a, b.durations / unit.b)
    comparison.a_steps, comparison.b_steps = len(a.durations), len(b.durations)
    comparison.speedup = comparison.a_ns / comparison.b_ns
    comparison.noise, comparison.significant, comparison.test = result.noise, result.significant, result.test
    comparison.difference, comparison.mean_speedup = result.verdict, result.mean_speedup
    comparison.by_means = result.by_means
    unprofiled = unprofiled_difference(a, b, (unit.a, unit.b), result.noise)
    if unprofiled is not None:
        comparison.unprofiled.CopyFrom(unprofiled)
    on_device = any(run.report.device.kind not in ("cpu", "") for run in (a, b))
    run = run_difference(a.logged, b.logged, (unit.a, unit.b), on_device)
    if run is not None:
        comparison.run.CopyFrom(run)
    if run is not None and a.from_telemetry and b.from_telemetry:
        # The report has the longest of neighbouring steps only, which are no sample of the steps.
        comparison.noise, comparison.significant = (run.high - run.low) / 2 / run.speedup, run.difference != "none"
        comparison.difference, comparison.by_means, comparison.mean_speedup = run.difference, False, run.speedup
        comparison.a_steps, comparison.b_steps = run.a_steps, run.b_steps
        comparison.test = headline_text("by_run").safe_substitute()
        return
    comparison.notes.extend([*_disturbed("A", a), *_disturbed("B", b)])


def _mean_changes(a: JudgedRun, b: JudgedRun, unit: TimeUnit) -> list[pb.RegimeDelta]:
    """Returns the mean times by regime of both runs in `unit`, and their changes. Isolated long steps are left out, but
    long steps that occur repeatedly are included, unlike in the typical times."""
    return waterfall(_per_unit(a.ns, unit.a), _per_unit(b.ns, unit.b))


def _per_unit(account: dict[Regime, float], size: int) -> dict[Regime, float]:
    """Returns the times by regime in `account` divided by `size`, the number of units (steps or samples) per step."""
    return {regime: ns / size for regime, ns in account.items()}


def _disturbed(letter: str, run: JudgedRun) -> list[str]:
    """Returns a list with a note if isolated long steps of the run are left out; otherwise empty. `letter` names the
    run, "A" or "B"."""
    durations = run.durations
    disturbed = np.flatnonzero(~undisturbed(durations))
    if not len(disturbed):
        return []
    values = {
        "run": letter,
        "count": len(disturbed),
        "steps": len(durations),
        "longest": duration_text(float(durations[disturbed].max())),
        "median": duration_text(float(np.median(durations))),
    }
    if disturbed.tolist() == [len(durations) - 1]:
        return [headline_text("disturbed_last").safe_substitute(values)]
    return [headline_text("disturbed_one" if len(disturbed) == 1 else "disturbed").safe_substitute(values)]


def _stacks(a: ComparedRun, b: ComparedRun) -> list[str]:
    """Returns a list with a note if only one of the runs recorded stacks, because this slows the host; otherwise
    empty."""
    recorded = [run.recording.trace.header.stacks_recorded for run in (a, b)]
    if recorded[0] == recorded[1]:
        return []
    letters = {"slowed": "A", "other": "B"} if recorded[0] else {"slowed": "B", "other": "A"}
    return [headline_text("stacks").safe_substitute(letters)]


def _health(a: JudgedRun, b: JudgedRun) -> list[str]:
    """Returns notes about the defects of the recordings, each with the letter of its run, A or B."""
    runs = (("A", a), ("B", b))
    notes = [(letter, note) for letter, run in runs for report in run.reports for note in health_notes(report)]
    return [f"{letter}: {note}" for letter, note in dict.fromkeys(notes)]


def _add_expected(comparison: pb.Comparison, a: ComparedRun, b: ComparedRun, unit: TimeUnit) -> str | None:
    """Adds the expected time of A's work on B's device and the shortfall to `comparison`, and returns the name of B's
    device.

    Adds nothing and returns None if the devices are equal or not known, if the replay of A is not trusted, or if the
    steps take no time, as in a damaged file.
    """
    devices = device_pair_of(a.recording, b.recording)
    if devices is None or not a.rank_ns > 0 or not sum(b.ns.values()) > 0:
        return None
    predictor = ReplayPredictor(a.recording, a.step_bounds)
    if not predictor.base.check.trusted:
        comparison.notes.append(f"A: {why_not_trusted(predictor.base.check)}")
        return None
    prediction = expected_time(predictor, devices)
    if not prediction.step.step_ns > 0:
        return None
    # The prediction is for the rank that was replayed, and for the mean of its undisturbed steps, including long steps
    # that occur repeatedly. The prediction is compared with B's mean, and then scaled to B's typical step by (time of
    # the typical step / mean).
    scale = a.step_ns / a.rank_ns / unit.a
    means = {regime: ns * scale for regime, ns in prediction.step.ns.items()}
    measured = _per_unit(b.ns, unit.b)
    typical_share = comparison.b_ns / sum(measured.values())
    after = {regime: ns * typical_share for regime, ns in means.items()}
    expected, total = comparison.expected, sum(after.values())
    expected.speedup, expected.b_ns = comparison.a_ns / total, total
    recorded = prediction.step.step_ns
    expected.low = expected.speedup * recorded / prediction.slowest_ns
    expected.high = expected.speedup * recorded / prediction.fastest_ns
    expected.basis, expected.kernels_speedup = "replay", prediction.kernels
    expected.assumptions.extend(prediction.assumptions)
    for row in comparison.by_regime:
        regime = Regime(row.regime)
        ratio = row.a_ns / after[regime] if after[regime] > 0 else 1.0
        because = prediction.because[regime]
        expected.by_regime.add(regime=row.regime, ratio=ratio, because=because, expected_ns=after[regime])
    samples = (unit.a, unit.b) if unit.per == "sample" else None
    shortfall = shortfall_between((a, b), devices, (means, measured), unit.per, samples)
    expected.shortfall.extend(shortfall_parts(shortfall))
    expected.remainder.extend(expected.shortfall)
    return devices.b.name
