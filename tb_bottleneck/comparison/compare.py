"""A comparison, the whole story on one page: the same work, the waterfall, the promise and what it was not kept by."""

from collections.abc import Sequence
from dataclasses import dataclass

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.expected_time import device_pair_of, expected_time
from tb_bottleneck.comparison.devices.shortfall import shortfall_between, shortfall_parts
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, Progress, UnjudgedRun, judge_run
from tb_bottleneck.comparison.runs.from_reports import TELEMETRY
from tb_bottleneck.comparison.significance import difference
from tb_bottleneck.comparison.texts.headline import headline_of, refusal_headline
from tb_bottleneck.comparison.waterfall import waterfall
from tb_bottleneck.comparison.workload.batch_size import SamplesPerStep, batch_size_of
from tb_bottleneck.comparison.workload.environment import environment_differences
from tb_bottleneck.comparison.workload.similarity import SAME_WORK_FROM, similarity
from tb_bottleneck.knowledge.comparison_texts import headline_text
from tb_bottleneck.measure import Missing
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.trace.process_facts import positive


@dataclass(frozen=True)
class TimeUnit:
    """What times are per: a step, or a sample where the batches differ. `a` and `b` are the samples of one step."""

    per: str
    a: int = 1
    b: int = 1


def compare(
    a: str | Sequence[str],
    b: str | Sequence[str],
    names: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> pb.Comparison:
    """Compares two runs, each given as the path of its recording, or as the paths of those of its ranks.

    Whatever the files hold, the answer is a comparison; where a side gives no verdict it is not `comparable`, and the
    notes say why.
    """
    paths = [[run] if isinstance(run, str) else list(run) for run in (a, b)]
    called = names or (paths[0][0], paths[1][0])
    return compare_runs(*(judge_run(name, files, progress) for name, files in zip(called, paths, strict=True)))


def compare_runs(a: JudgedRun | UnjudgedRun, b: JudgedRun | UnjudgedRun) -> pb.Comparison:
    """Compares what was read. Of sides of which only reports are left, less can be told."""
    told = pb.Comparison(schema=SCHEMA, a=a.name, b=b.name, per="step")
    if isinstance(a, UnjudgedRun) or isinstance(b, UnjudgedRun):
        told.notes.extend(reason for run in (a, b) if isinstance(run, UnjudgedRun) for reason in run.because)
        told.headline = refusal_headline(told.notes)
        return told
    by_telemetry = [run.report.evidence_source == TELEMETRY for run in (a, b)]
    if by_telemetry[0] != by_telemetry[1]:
        said = {"telemetry": "A", "trace": "B"} if by_telemetry[0] else {"telemetry": "B", "trace": "A"}
        told.notes.append(headline_text("mixed").safe_substitute(said))
        told.headline = refusal_headline(told.notes)
        return told
    told.comparable = True
    told.causes.gained.extend(cause for cause in b.causes if cause not in a.causes)
    told.causes.lost.extend(cause for cause in a.causes if cause not in b.causes)
    if not (isinstance(a, ComparedRun) and isinstance(b, ComparedRun)):
        _tell_times(told, a, b, TimeUnit("step"))
        told.notes.extend([headline_text("reported").safe_substitute(), *_health(a, b)])
        told.headline = headline_of(told, ranks=rank_counts(a, b))
        return told
    batches = batch_size_of(a.recording), batch_size_of(b.recording)
    unit = time_unit_of(*batches)
    found = similarity(a.recording, b.recording)
    alike = 1.0 if isinstance(found, Missing) else found
    _tell_batches(told, unit, *batches)
    _tell_times(told, a, b, unit)
    told.context.extend(environment_differences(a, b))
    told.notes.extend([found.because] if isinstance(found, Missing) else [])
    told.notes.extend([*_stacks(a, b), *_health(a, b)])
    unprofiled = unprofiled_of(a.recording, unit.a), unprofiled_of(b.recording, unit.b)
    device = _tell_promise(told, a, b, unit) if alike >= SAME_WORK_FROM else None
    told.headline = headline_of(told, alike, device, unprofiled, rank_counts(a, b)) + _on_cpu(a, b)
    return told


def _on_cpu(a: ComparedRun, b: ComparedRun) -> str:
    """That only one of the two worked on a device, which nothing in their times says."""
    if a.recording.on_device == b.recording.on_device:
        return ""
    said = {"cpu": "B", "device": "A"} if a.recording.on_device else {"cpu": "A", "device": "B"}
    return headline_text("on_cpu").safe_substitute(said)


def rank_counts(a: JudgedRun, b: JudgedRun) -> tuple[int, int] | None:
    """How many ranks each side's job has, where both say so and they differ."""
    if not (a.report.HasField("world_size") and b.report.HasField("world_size")):
        return None
    found = a.report.world_size, b.report.world_size
    return None if found[0] == found[1] else found


def unprofiled_of(recording: Recording, samples: int) -> float | None:
    """Time per step or sample in ns while nothing was recorded, where the run measured it."""
    said = positive(recording.trace.header.context.get("unprofiled_step_ns"))
    return None if said is None else said / samples


def time_unit_of(a: SamplesPerStep | Missing, b: SamplesPerStep | Missing) -> TimeUnit:
    """Per sample where both batches are known and differ."""
    if isinstance(a, Missing) or isinstance(b, Missing) or a.samples == b.samples:
        return TimeUnit("step")
    return TimeUnit("sample", a.samples, b.samples)


def _tell_batches(
    told: pb.Comparison, unit: TimeUnit, a: SamplesPerStep | Missing, b: SamplesPerStep | Missing
) -> None:
    told.per = unit.per
    for found, target in ((a, told.a_batch), (b, told.b_batch)):
        if not isinstance(found, Missing):
            target.MergeFrom(pb.BatchSize(samples=found.samples, basis=found.basis))
    missing = next((one.because for one in (a, b) if isinstance(one, Missing)), None)
    if missing is not None:
        told.notes.append(
            f"Times are per step, as if both worked on as many samples. {missing[:1].upper()}{missing[1:]}."
        )
    elif unit.per == "sample":
        told.notes.append(f"Times are per sample, since the batches differ: {unit.a} and {unit.b} samples per step.")


def _tell_times(told: pb.Comparison, a: JudgedRun, b: JudgedRun, unit: TimeUnit) -> None:
    ns_a, ns_b = ({regime: run.ns[regime] / size for regime in REGIMES} for run, size in ((a, unit.a), (b, unit.b)))
    told.by_regime.extend(waterfall(ns_a, ns_b))
    told.a_ns, told.b_ns = sum(ns_a.values()), sum(ns_b.values())
    found = difference(a.durations / unit.a, b.durations / unit.b)
    told.a_steps, told.b_steps = len(a.durations), len(b.durations)
    told.speedup = told.a_ns / told.b_ns
    told.noise, told.significant, told.test = found.noise, found.significant, found.test


def _stacks(a: ComparedRun, b: ComparedRun) -> list[str]:
    """That one side was slowed by its recording more than the other, where the heads say so."""
    recorded = [run.recording.trace.header.stacks_recorded for run in (a, b)]
    if recorded[0] == recorded[1]:
        return []
    said = {"slowed": "A", "other": "B"} if recorded[0] else {"slowed": "B", "other": "A"}
    return [headline_text("stacks").safe_substitute(said)]


def _health(a: JudgedRun, b: JudgedRun) -> list[str]:
    """What is wrong with the recordings."""
    runs = (("A", a), ("B", b))
    reasons = [(name, reason.detail) for name, run in runs for one in run.reports for reason in one.health.reasons]
    return [f"{name}: {detail}" for name, detail in dict.fromkeys(reasons)]


def _tell_promise(told: pb.Comparison, a: ComparedRun, b: ComparedRun, unit: TimeUnit) -> str | None:
    """Fills in what B's device promises, where it is another one than A's; returns what it is called."""
    move = device_pair_of(a.recording, b.recording)
    if move is None:
        return None
    found = expected_time(a.recording, move)
    # What is promised is of the rank that was replayed; times are the mean over the ranks.
    scale = a.step_ns * len(a.recording.steps) / sum(a.recording.account.ns.values()) / unit.a
    after = {regime: ns * scale for regime, ns in found.step.ns.items()}
    expected, told_expected = sum(after.values()), told.expected
    told_expected.speedup, told_expected.b_ns = told.a_ns / expected, expected
    told_expected.low = told.a_ns / (found.slowest_ns * scale)
    told_expected.high = told.a_ns / (found.fastest_ns * scale)
    told_expected.basis, told_expected.kernels_speedup = found.step.basis, found.kernels
    told_expected.assumptions.extend(found.assumptions)
    for bar in told.by_regime:
        regime = Regime(bar.regime)
        ratio = bar.a_ns / after[regime] if after[regime] > 0 else 1.0
        because = found.because[regime]
        told_expected.by_regime.add(regime=bar.regime, ratio=ratio, because=because, expected_ns=after[regime])
    measured = {Regime(bar.regime): bar.b_ns for bar in told.by_regime}
    samples = (unit.a, unit.b) if unit.per == "sample" else None
    told_expected.shortfall.extend(
        shortfall_parts(shortfall_between((a, b), move, (after, measured), unit.per, samples))
    )
    return move.b.name
