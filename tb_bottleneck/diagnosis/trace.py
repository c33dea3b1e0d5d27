"""Diagnosis of a trace: load, attribute time, check quality, judge, replay, build the report."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from tb_bottleneck.attribution.profiler_time.removal import without_profiler_time
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES, DEVICE_REGIMES, Regime
from tb_bottleneck.bottlenecks.gpu_unused import rule as gpu_unused
from tb_bottleneck.bottlenecks.input.loader_workers import took_ready_batches, workers_window
from tb_bottleneck.bottlenecks.judge import Conclusion, conclusion_of, judge_all
from tb_bottleneck.bottlenecks.places import cause_places
from tb_bottleneck.bottlenecks.plan import Prediction, predict
from tb_bottleneck.bottlenecks.rule_types import WORTH_RECOVERING, Verdict
from tb_bottleneck.diagnosis.parts import Parts, details_of, headroom_of, trace_unprofiled
from tb_bottleneck.measures.efficiency.trace_figures import trace_figures
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.user_code.places import Place
from tb_bottleneck.quality.degradations import degradations_of, host_not_recorded_defect, stacks_defects, warmup_defect
from tb_bottleneck.quality.trace_defects import (
    MIN_JUDGED_STEPS,
    Defect,
    damage_of,
    fatal_defect,
    processes_of,
    work_ran_on_cpu,
)
from tb_bottleneck.report.builders.findings import Diagnosis, causes_by_cost
from tb_bottleneck.report.builders.gains import NotPredicted, trace_confidence
from tb_bottleneck.report.builders.recording_description import membership_of, trace_origin, trace_window, unused_device
from tb_bottleneck.report.builders.report_builder import (
    Facts,
    ReportIdentity,
    build_report,
    refused_report,
    unreadable_report,
)
from tb_bottleneck.report.builders.situation import situation_of, timers_text
from tb_bottleneck.report.builders.trace_report_texts import TraceTexts
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.columns.device_clock import LAUNCH_SPREAD_NS
from tb_bottleneck.trace.steps import Steps, find_steps
from tb_bottleneck.trace.trace import Trace, load

_TEXTS = TraceTexts()
_log = logging.getLogger(__name__)


def diagnose(
    path: str,
    *,
    run: str = ".",
    progress: Callable[[int, int], None] | None = None,
    keep: Callable[[Recording], None] | None = None,
) -> pb.Report:
    """Reads the trace at `path` and returns its report. Raises only MemoryError.

    `run` is the name of the run in the report. `progress` is called with the bytes read and the bytes in total. `keep`
    is called with the recording if the trace gets a verdict. For a file that cannot be judged, the health of the report
    is `unreadable` or `incomplete`, and the report states the reason and the fix.
    """
    report, recording = _guarded(lambda: load(path, progress), path, run)
    if recording is not None and keep is not None:
        keep(recording.for_replay)
    return report


def diagnose_loaded(trace: Trace, path: str, *, run: str = ".") -> tuple[pb.Report, Recording | None]:
    """Returns the report about `trace`, and its recording, or None instead of the recording if the trace gets no
    verdict.

    `path` is the file from which `trace` was read; only its name is used. `run` is the name of the run in the report.
    Raises only MemoryError.
    """
    return _guarded(lambda: trace, path, run)


def _guarded(loaded: Callable[[], Trace], path: str, run: str) -> tuple[pb.Report, Recording | None]:
    """Returns the report about the trace that `loaded` returns, and its recording or None, as `diagnose_loaded` does.
    If an error occurs, including an error of `loaded`, returns (report about the error, None). Raises only
    MemoryError."""
    source = os.fsencode(PurePath(path).name).decode("utf-8", "replace")  # a file name need not be valid Unicode
    identity, parts = ReportIdentity(run, source, "trace"), Parts()
    try:
        facts, recording = _diagnose(loaded(), identity, parts)
        return build_report(facts), recording
    except BottleneckError as error:
        return refused_report(identity, error), None
    except MemoryError:
        raise  # the caller limits the memory, and can explain it better
    except Exception as error:  # an error in one file must not affect the others
        _log.exception("the diagnosis of one recording failed")
        return unreadable_report(identity, "broken", f"{type(error).__name__}: {error}"[:300]), None


def _diagnose(trace: Trace, identity: ReportIdentity, parts: Parts) -> tuple[Facts, Recording | None]:
    """Returns what the report about `trace` is built from, and its recording, or None instead of the recording if the
    trace gets no verdict."""
    steps = find_steps(trace)
    fatal = fatal_defect(trace, steps)
    origin = trace_origin(trace, fatal)
    memory = parts.build("memory", lambda: _recorded_memory(trace, steps))
    if steps is None or fatal is not None:
        facts = Facts(identity, _TEXTS, origin, _with_damage(fatal, trace), memory=memory, broken=parts.broken)
        return facts, None
    recording = without_profiler_time(Recording(trace, steps))
    known = partial(
        Facts,
        window=trace_window(recording),
        account=recording.account,
        membership=membership_of(recording),
        memory=memory,
        details=details_of(recording, parts),
        broken=parts.broken,
    )
    unrecorded = host_not_recorded_defect(recording)
    fatal = unrecorded if unrecorded is not None and unrecorded.fatal else warmup_defect(recording)
    if fatal is not None:
        return known(identity, _TEXTS, origin, _with_damage(fatal, trace)), None
    defects = [*([unrecorded] if unrecorded is not None else []), *_degradations(recording)]
    diagnosis = _judge(recording, defects, parts)
    if work_ran_on_cpu(trace):
        origin = replace(origin, device=unused_device(trace))
    simulated = origin.device.kind == "cpu" or recording.on_device
    prediction = _replay(recording, diagnosis) if simulated else None
    places = parts.build("places", lambda: _places(recording, diagnosis)) or {}
    if any(regime in AVOIDABLE_REGIMES or regime is Regime.UNEXPLAINED for regime, _ in places):
        defects += stacks_defects(recording)
    facts = known(
        identity,
        _TEXTS,
        origin,
        defects,
        diagnosis=diagnosis,
        prediction=prediction,
        places=places,
        efficiency=parts.build("efficiency", lambda: trace_figures(recording)),
        unprofiled=trace_unprofiled(recording, defects),
        headroom=lambda report: headroom_of(report, parts, recording),
    )
    return facts, recording


def _recorded_memory(trace: Trace, steps: Steps | None) -> pb.Memory | None:
    """Returns the memory part of the report, or None if the trace has no steps or no memory events."""
    if steps is None or not len(trace.memory):
        return None
    from tb_bottleneck.diagnosis.memory import recorded_memory

    return recorded_memory(trace, steps)


def _with_damage(fatal: Defect | None, trace: Trace) -> list[Defect]:
    """Returns the defect `fatal`, if not None, and the defects of a damaged file."""
    return [*([fatal] if fatal is not None else []), *damage_of(trace)]


def _degradations(recording: Recording) -> list[Defect]:
    """Returns the defects that are not fatal. Batches that were ready explain why steps are not typical."""
    defects = list(degradations_of(recording))
    if not took_ready_batches(recording):
        return defects
    steps = len(recording.steps)
    figures = {"recorded": recording.account.window / steps, "pause": workers_window(recording) / steps}
    return [Defect("ready_batches", False, figures), *(each for each in defects if each.code != "atypical_steps")]


def _judge(recording: Recording, defects: Sequence[Defect], parts: Parts) -> Diagnosis:
    """Returns the verdicts and the conclusion, with the confidence and the description of the situation. If the work
    ran on the CPU although a device is present, the only verdict is `gpu_unused`."""
    measures = Measures(recording)
    if work_ran_on_cpu(recording.trace):
        # The account of the CPU (time per regime) is irrelevant until the work runs on the device. The confidence is
        # high because the absence of device work is a fact and not an inference.
        unused = gpu_unused.verdict_of(measures)
        return Diagnosis((unused,), Conclusion(unused.regime, unused.judgement.share, "critical"), "high")
    verdicts = judge_all(measures)
    if any(defect.code == "kernels_before_launch" for defect in defects):
        verdicts = tuple(map(_without_idle_causes, verdicts))
    conclusion = conclusion_of(verdicts)
    confidence = "low" if _clocks_differ(recording) else trace_confidence(recording, defects, conclusion, verdicts)
    timers = parts.build("timers", lambda: timers_text(recording))
    situation = " ".join(filter(None, (situation_of(measures, conclusion), timers)))
    return Diagnosis(verdicts, conclusion, confidence, situation)


def _clocks_differ(recording: Recording) -> bool:
    """Returns True if the device's clock was moved, and the error of that may change much of the idle time."""
    error = len(recording.idle) * LAUNCH_SPREAD_NS if recording.trace.clock_shift_ns else 0
    return error > WORTH_RECOVERING * recording.account.window


def _without_idle_causes(verdict: Verdict[Recording]) -> Verdict[Recording]:
    """Returns the verdict with nothing to recover and with uncertain causes, if it is about time in which the device is
    idle: with clocks that do not agree, it is not known which of the host's work belongs to this time."""
    if verdict.regime in (*DEVICE_REGIMES, Regime.COMMUNICATION):
        return verdict
    causes = tuple(replace(cause, certain=False, bounded=False) for cause in verdict.judgement.causes)
    judgement = replace(verdict.judgement, causes=causes, recoverable=0.0, doubtful=0.0, sets_pace=False)
    return replace(verdict, judgement=judgement)


def _places(recording: Recording, diagnosis: Diagnosis) -> dict[tuple[Regime, str], tuple[Place, ...]]:
    """Returns (regime, cause) -> places in the user's program, for each cause of `diagnosis`."""
    causes = [(verdict.regime, cause.name) for verdict, cause in causes_by_cost(diagnosis, _TEXTS)]
    return {named: cause_places(recording, *named) for named in causes}


def _unsure(recording: Recording) -> str:
    """Returns why the recording does not even show a bound of the gains, as in gains.UNSURE; empty if it does."""
    trace, steps = recording.trace, recording.steps
    reasons = {
        "truncated": bool(trace.truncated),
        "damaged": steps.damaged > 0 and len(steps) + steps.others < MIN_JUDGED_STEPS,
        "processes": processes_of(trace) > 1,
        "clocks": _clocks_differ(recording),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _replay(recording: Recording, diagnosis: Diagnosis) -> Prediction | NotPredicted:
    """Simulates the fixes of those causes whose `certain` and `recurs` are True (see Cause). Returns NotPredicted if
    the recording does not allow it, or an error occurs. Raises only MemoryError."""
    unsure = _unsure(recording)
    if unsure:
        return NotPredicted(unsure)
    causes = [cause for _, cause in causes_by_cost(diagnosis, _TEXTS) if cause.certain and cause.recurs]
    try:
        return predict(recording, [cause.name for cause in causes])
    except MemoryError:
        raise
    except Exception:
        _log.exception("the replay of one recording failed")
        return NotPredicted("broken")
