"""Diagnosis of telemetry: read the event file, attribute time, check quality, judge, build the report.

The regimes are judged as in diagnosis/trace.py, but from the data of the monitor, and also while the training runs.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import PurePath

from tb_bottleneck.attribution.telemetry.first_epoch import first_epoch_of
from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.gpu_unused import telemetry_rule as gpu_unused
from tb_bottleneck.bottlenecks.input.pipeline import worker_processes_needed
from tb_bottleneck.bottlenecks.input.stages import sampled_work
from tb_bottleneck.bottlenecks.interruption.run_time import recompiled_places, run_time
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.bottlenecks.launch.compile_log import compile_log
from tb_bottleneck.bottlenecks.places import CAUSES, worker_places
from tb_bottleneck.bottlenecks.recoverable import unknown_time
from tb_bottleneck.bottlenecks.telemetry_judge import conclusion_of, judge_all
from tb_bottleneck.diagnosis.parts import Parts, headroom_of
from tb_bottleneck.measures.efficiency.utilisation import Utilisation
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry.efficiency import telemetry_figures
from tb_bottleneck.memory.telemetry_memory import TelemetryMemory
from tb_bottleneck.quality.telemetry_defects import telemetry_defects
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.report.builders.details import input_pipeline, logged_compilation
from tb_bottleneck.report.builders.evidence_source_texts import Places
from tb_bottleneck.report.builders.findings import Diagnosis
from tb_bottleneck.report.builders.memory import findings_message, memory_message
from tb_bottleneck.report.builders.report_builder import Details, Facts, ReportIdentity, build_report, unreadable_report
from tb_bottleneck.report.builders.telemetry_inputs import (
    TelemetryTexts,
    telemetry_confidence,
    telemetry_origin,
    telemetry_window,
)
from tb_bottleneck.report.builders.telemetry_phases import phases_of, run_time_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.telemetry.telemetry_file import SeriesFile
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.trace.process_facts import parameter_bytes

_log = logging.getLogger(__name__)


class TelemetryReader:
    """Reads the telemetry of one process from the event file at `path`, which may still grow. Not thread-safe.

    If `follow_links` is False, `path` must be absolute, and no part of it may be a symbolic link. `source` is the name
    of the file, and `telemetry` contains all data that was read so far.
    """

    def __init__(self, path: str, follow_links: bool = True) -> None:
        self.source = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
        self.telemetry = Telemetry()
        self._file = SeriesFile(path, follow_links)

    def read(self) -> bool:
        """Reads new data of the file, or a part of the new data. Returns True if more data can be read immediately. If
        the file was replaced by a new one, `telemetry` starts empty again.

        Raises:
            OSError: the file cannot be read.
        """
        piece = self._file.read()
        if piece.restarted:
            self.telemetry = Telemetry()
        self.telemetry.add(piece.messages)
        return piece.more

    @property
    def position(self) -> tuple[int, int]:
        """(bytes that were read, size of the file in bytes at the last read)."""
        return self._file.read_bytes, self._file.size

    @property
    def dropped(self) -> dict[str, int]:
        """Maps each reason for which data could not be used to the number of such messages or readings."""
        return {reason: count for reason, count in (self._file.dropped + self.telemetry.dropped).items() if count}


def diagnose_telemetry(path: str, *, run: str = ".", progress: Callable[[int, int], None] | None = None) -> pb.Report:
    """Reads the event file at `path` and returns the report about the monitor's data in it. Raises only MemoryError.

    `run` is the name of the run in the report. `progress` is called with the bytes read and the bytes in total.
    """
    reader = TelemetryReader(path)
    return read_all(reader, run=run, progress=progress) or judge_telemetry(reader, run=run)


def read_all(
    reader: TelemetryReader, *, run: str = ".", progress: Callable[[int, int], None] | None = None
) -> pb.Report | None:
    """Reads all data that the file contains now. Returns None on success, otherwise a report that states why the file
    cannot be read.

    `run` is the name of the run in the report. `progress` is called with the bytes read and the bytes in total. Raises
    only MemoryError.
    """
    try:
        while reader.read():
            if progress is not None:
                progress(*reader.position)
    except OSError as error:
        return unreadable(reader, run, "inaccessible", f"The file cannot be read: {error.strerror or error}.")
    except MemoryError:
        raise
    except Exception as error:  # an error in one recording must not affect the others
        return _broken(reader, run, error)
    return None


def judge_telemetry(reader: TelemetryReader, *, run: str = ".", latest: bool = False) -> pb.Report:
    """Returns the report about the data that `reader` has read so far. `run` is the name of the run in the report.
    Raises only MemoryError.

    With `latest`, the report is only about the last phase (a part of the run in which one regime dominates), which is
    the present state of a training that is still running.
    """
    try:
        parts = Parts()
        return build_report(_diagnose(reader, _identity(reader, run), latest, parts))
    except MemoryError:
        raise
    except Exception as error:  # an error in one recording must not affect the others
        return _broken(reader, run, error)


def unreadable(reader: TelemetryReader, run: str, code: str, because: str) -> pb.Report:
    """Returns the report of a file that could not be read or judged. `run` is the name of the run. `code` is the id of
    the reason, and `because` a sentence about it."""
    return unreadable_report(_identity(reader, run), code, because)


def _identity(reader: TelemetryReader, run: str) -> ReportIdentity:
    return ReportIdentity(run, reader.source, "telemetry")


def _broken(reader: TelemetryReader, run: str, error: Exception) -> pb.Report:
    """Logs `error` and returns a report that states the error."""
    _log.exception("the telemetry of one process could not be judged")
    return unreadable(reader, run, "broken", f"{type(error).__name__}: {error}"[:300])


def _diagnose(reader: TelemetryReader, identity: ReportIdentity, latest: bool, parts: Parts) -> Facts:
    """Returns what the report is built from. If a defect is fatal, the report has no verdict. `latest` is as in
    `judge_telemetry`."""
    recording = TelemetryRecording(reader.telemetry)
    origin = telemetry_origin(recording)
    defects = list(telemetry_defects(recording, reader.dropped))
    if any(defect.fatal for defect in defects):
        return Facts(identity, TelemetryTexts(), origin, defects)
    whole, phases, in_doubt = recording, phases_of(recording), tuple(defects)
    latest_phase_only, cached = latest and len(phases) > 1, first_epoch_of(reader.telemetry)
    since = phases[-1].begin if latest_phase_only else 0
    if cached is not None and cached.end > since:
        since = cached.end
        figures = {"steps": float(cached.steps), "times": cached.times_longer}
        defects.append(Defect("first_epoch_fills_cache", False, figures))
    if since:
        recording = TelemetryRecording(reader.telemetry, since)
    parameters = parameter_bytes(recording.facts.get("parameters_by_dtype"))
    return Facts(
        identity,
        TelemetryTexts(unknown_time(recording)),
        origin,
        defects,
        window=telemetry_window(recording),
        account=recording.account,
        diagnosis=_judge(recording, in_doubt),
        places=parts.build("places", lambda: _places(recording)),
        phases=phases,
        latest_phase_only=latest_phase_only,
        memory=parts.build("memory", lambda: counted_memory(reader.telemetry, origin.device.kind)),
        details=Details(
            input=parts.build("input", lambda: _input_of(recording)),
            compilation=parts.build("compilation", lambda: logged_compilation(compile_log(recording.facts))),
            run_time=parts.build("run_time", lambda: run_time_of(run_time(whole))),
        ),
        efficiency=parts.build("efficiency", lambda: Utilisation(telemetry_figures(recording))),
        headroom=lambda report: headroom_of(report, parts, parameters=parameters),
        broken=parts.broken,
    )


def _places(recording: TelemetryRecording) -> Places:
    """Returns (regime, cause) -> places in the user's program: where the loader's workers make batches, and which
    functions are recompiled. Telemetry has no other places."""
    work = sampled_work(recording.facts)
    workers = {(Regime.INPUT, cause): worker_places(work, cause) for cause in sorted(CAUSES)}
    return workers | {(Regime.INTERRUPTION, "recompilation"): recompiled_places(recording)}


def _input_of(recording: TelemetryRecording) -> pb.InputPipeline | None:
    """Returns the message about the input pipeline; None if nothing is known about it."""
    work, needed = sampled_work(recording.facts), worker_processes_needed(recording)
    return input_pipeline(work, recording.fact("workers"), needed, recording.facts)


def _judge(recording: TelemetryRecording, defects: Sequence[Defect]) -> Diagnosis:
    """Returns the verdicts and the conclusion, with the confidence. If the device
    is not used, the only verdict is `gpu_unused`."""
    measures = Measures(recording)
    verdicts = judge_all(measures)
    conclusion = conclusion_of(verdicts)
    unused = gpu_unused.verdict_of(measures) if recording.on_device else None
    if unused is not None:
        # The account (time per regime) of the idle device is irrelevant until the work runs on this device.
        verdicts, conclusion = (unused,), Conclusion(unused.regime, unused.judgement.share, "critical")
    return Diagnosis(verdicts, conclusion, telemetry_confidence(recording, defects, conclusion))


def counted_memory(telemetry: Telemetry, kind: str) -> pb.Memory | None:
    """Returns the memory part of the report from the monitor's counters. `kind` is the kind of the device, such as
    "cuda" or "cpu". Returns None if no memory was counted, or after an error. Raises only MemoryError."""
    try:
        memory = TelemetryMemory(telemetry, kind)
        account, findings = memory.account, memory.findings()
        if account is None:
            return (
                pb.Memory(evidence_source="telemetry", kind=kind, findings=findings_message(findings))
                if findings
                else None
            )
        return memory_message(account, (), findings)
    except MemoryError:
        raise
    except Exception:
        _log.exception("the memory of one run could not be accounted for")
        return None
