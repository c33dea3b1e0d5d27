"""Diagnosis of telemetry: read the event file, attribute time, check quality, judge, build the report.

The counterpart of diagnosis/trace.py. The same regimes are judged, also while the training runs, from the data of its
monitor.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import PurePath

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.quality.telemetry_defects import telemetry_defects
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.regimes.judge import Conclusion
from tb_bottleneck.regimes.telemetry import gpu_unused
from tb_bottleneck.regimes.telemetry.judge import conclusion_of, judge_all
from tb_bottleneck.report.builders.report_builder import Diagnosis, Identity, build_report, unreadable_report
from tb_bottleneck.report.builders.telemetry_inputs import telemetry_confidence, telemetry_origin, telemetry_window
from tb_bottleneck.report.builders.telemetry_phases import phases_of
from tb_bottleneck.report.builders.texts_of_telemetry import TelemetryTexts
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.telemetry_file import SeriesFile
from tb_bottleneck.telemetry.telemetry import Telemetry

_TEXTS = TelemetryTexts()
_log = logging.getLogger(__name__)


class Listener:
    """One process's telemetry, which may still grow. Not for several threads at once."""

    def __init__(self, path: str) -> None:
        self.source = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
        self.telemetry = Telemetry()
        self._file = SeriesFile(path)

    def listen(self) -> bool:
        """Takes in what was added, or a part of it; True where there is more to take in at once.

        Raises:
            OSError: the file cannot be read.
        """
        piece = self._file.read()
        if piece.restarted:
            self.telemetry = Telemetry()
        self.telemetry.add(piece.messages)
        return piece.more

    @property
    def heard(self) -> tuple[int, int]:
        """Bytes of the file that were taken in, and bytes that it had at the last look."""
        return self._file.read_bytes, self._file.size

    @property
    def dropped(self) -> dict[str, int]:
        """What was there and could not be used, by reason."""
        return {reason: count for reason, count in (self._file.dropped + self.telemetry.dropped).items() if count}


def diagnose_telemetry(path: str, *, run: str = ".", progress: Callable[[int, int], None] | None = None) -> pb.Report:
    """Reads the event file at `path` and returns the report about the monitor's data in it. Raises only MemoryError.

    `progress` is called with the bytes read and the bytes in total.
    """
    listener = Listener(path)
    return unheard(listener, run=run, progress=progress) or judge_telemetry(listener, run=run)


def unheard(
    listener: Listener, *, run: str = ".", progress: Callable[[int, int], None] | None = None
) -> pb.Report | None:
    """Reads everything that the file contains now. Returns None, or a report with the reason if that fails.

    Only MemoryError is raised.
    """
    try:
        while listener.listen():
            if progress is not None:
                progress(*listener.heard)
    except OSError as error:
        return unreadable(listener, run, "unreadable", f"{listener.source}: {error.strerror or error}")
    except MemoryError:
        raise
    except Exception as error:  # an error in one recording must not affect the others
        return _broken(listener, run, error)
    return None


def judge_telemetry(listener: Listener, *, run: str = ".", latest: bool = False) -> pb.Report:
    """Returns the report about the data read so far. With `latest` it is about the last phase only: the state of a
    training that is still running.

    Only MemoryError is raised.
    """
    try:
        return _diagnose(listener, _identity(listener, run), latest)
    except MemoryError:
        raise
    except Exception as error:  # an error in one recording must not affect the others
        return _broken(listener, run, error)


def unreadable(listener: Listener, run: str, code: str, because: str) -> pb.Report:
    """Returns the report of a file that could not be read or judged."""
    return unreadable_report(_identity(listener, run), code, because)


def _identity(listener: Listener, run: str) -> Identity:
    return Identity(run, listener.source, "telemetry")


def _broken(listener: Listener, run: str, error: Exception) -> pb.Report:
    _log.exception("the telemetry of one process could not be judged")
    return unreadable(listener, run, "broken", f"{type(error).__name__}: {error}"[:300])


def _diagnose(listener: Listener, identity: Identity, latest: bool) -> pb.Report:
    recording = TelemetryRecording(listener.telemetry)
    origin = telemetry_origin(recording)
    defects = list(telemetry_defects(recording, listener.dropped))
    if any(defect.fatal for defect in defects):
        return build_report(identity, _TEXTS, origin, defects)
    phases = phases_of(recording)
    latest_phase_only = latest and len(phases) > 1
    if latest_phase_only:
        recording = TelemetryRecording(listener.telemetry, since=phases[-1].begin)
    return build_report(
        identity,
        _TEXTS,
        origin,
        defects,
        window=telemetry_window(recording),
        account=recording.account,
        diagnosis=_judge(recording, defects),
        phases=phases,
        latest_phase_only=latest_phase_only,
    )


def _judge(recording: TelemetryRecording, defects: Sequence[Defect]) -> Diagnosis:
    measures = Measures(recording)
    verdicts = judge_all(measures)
    conclusion = conclusion_of(verdicts)
    unused = gpu_unused.verdict_of(measures) if recording.on_device else None
    if unused is not None:
        # The account of the idle device is irrelevant until the work runs on it.
        verdicts, conclusion = (unused,), Conclusion(unused.regime, unused.judgement.share, "critical")
    return Diagnosis(verdicts, conclusion, telemetry_confidence(recording, defects, conclusion))
