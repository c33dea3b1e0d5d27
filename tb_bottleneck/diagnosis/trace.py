"""The whole story on one page: a file becomes a trace, the trace a recording with steps, the recording a report."""

import logging
import os
from collections.abc import Callable
from pathlib import PurePath

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.errors import BottleneckError, StillGrowing
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.quality.degradations import degradations_of
from tb_bottleneck.quality.host_not_recorded import host_not_recorded_defect
from tb_bottleneck.quality.trace_defects import damage_of, fatal_defect, work_ran_on_cpu
from tb_bottleneck.quality.warmup import warmup_defect
from tb_bottleneck.regimes import gpu_unused
from tb_bottleneck.regimes.judge import Conclusion, conclusion_of, judge_all
from tb_bottleneck.replay.plan import predict
from tb_bottleneck.report.builders import predictions, provenance, trace_report
from tb_bottleneck.report.builders.confidence import confidence_of, lowered
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import Trace, load

_log = logging.getLogger(__name__)


def diagnose(
    path: str,
    *,
    run: str = ".",
    progress: Callable[[int, int], None] | None = None,
    keep: Callable[[Recording], None] | None = None,
) -> pb.Report:
    """Reads the trace at `path` and judges it.

    `progress` is told bytes read and bytes in all; `keep` is given the recording where it got a verdict. Whatever the
    file holds, the answer is a report: one that cannot be read has the health `unreadable`, one that cannot be judged
    `incomplete`, both with the reason and what mends it. Only MemoryError is raised.
    """
    source = os.fsencode(PurePath(path).name).decode("utf-8", "replace")  # a file's name need not be Unicode
    report = trace_report.empty_report(run, source)
    try:
        recording = _judge(load(path, progress), report)
        if recording is not None and keep is not None:
            keep(recording)
    except StillGrowing as error:
        trace_report.set_unreadable(report, "growing", str(error))
    except BottleneckError as error:
        trace_report.set_unreadable(report, "unreadable", str(error))
    except MemoryError:
        raise  # whoever bounds our memory has the better words for it
    except Exception as error:  # the border of one file: it costs its own report only
        _log.exception("the diagnosis of one recording failed")
        report = trace_report.empty_report(run, source)
        trace_report.set_unreadable(report, "broken", f"{type(error).__name__}: {error}"[:300])
    return report


def _judge(trace: Trace, report: pb.Report) -> Recording | None:
    """Fills the report; returns the recording where it got a verdict."""
    provenance.set_origin(report, trace)
    steps = find_steps(trace)
    fatal = fatal_defect(trace, steps)
    if steps is None or fatal is not None:
        trace_report.set_health(report, [*([fatal] if fatal is not None else []), *damage_of(trace)])
        return None
    recording = Recording(trace, steps)
    trace_report.set_window(report, recording)
    trace_report.set_account(report, recording)
    fatal = warmup_defect(recording) or host_not_recorded_defect(recording)
    found = [fatal, *damage_of(trace)] if fatal is not None else list(degradations_of(recording))
    trace_report.set_health(report, found)
    if fatal is not None:
        return None
    _give_verdict(recording, report, confidence_of(recording, found))
    return recording


def _give_verdict(recording: Recording, report: pb.Report, confidence: str) -> None:
    measures = Measures(recording)
    verdicts = judge_all(measures)
    answer = conclusion_of(verdicts)
    if work_ran_on_cpu(recording.trace):
        unused = gpu_unused.verdict_of(measures)
        # What the CPU's own account says is beside the point until the work is on the device.
        verdicts, answer = (unused,), Conclusion(unused.regime, unused.judgement.share, "critical")
        provenance.set_unused_device(report, recording.trace)
        confidence = "high"  # that nothing ran on the device is seen, not inferred
    trace_report.set_verdicts(report, verdicts, answer)
    trace_report.set_answer(report, answer, verdicts, lowered(confidence, answer, verdicts))
    if report.device.kind == "cpu" or recording.on_device:
        _replay(recording, report)


def _replay(recording: Recording, report: pb.Report) -> None:
    """Simulates the cures; a replay that breaks is shown as broken and costs the report nothing else."""
    try:
        prediction = predict(recording, [finding.cause for finding in report.findings])
    except MemoryError:
        raise
    except Exception:
        _log.exception("the replay of one recording failed")
        predictions.set_broken_replay(report)
    else:
        predictions.set_prediction(report, prediction)
