"""The second witness on one page: an event file becomes telemetry, the telemetry a testimony, the testimony a report.

The counterpart of diagnosis.py: the same regimes are judged, while the training runs, from what its monitor wrote.
"""

import logging
import os
from collections.abc import Callable
from pathlib import PurePath

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.regimes.judge import Answer
from tb_bottleneck.regimes.telemetry import gpu_unused
from tb_bottleneck.regimes.telemetry.judge import answer_of, judge_all
from tb_bottleneck.report.builders import telemetry_report, trace_report
from tb_bottleneck.report.builders.telemetry_phases import bands_of
from tb_bottleneck.report.rendering import phases
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.telemetry_file import SeriesFile
from tb_bottleneck.telemetry.telemetry import Telemetry

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
    """Reads the event file at `path` and judges what the monitor wrote into it. Only MemoryError is raised.

    `progress` is told bytes read and bytes in all.
    """
    listener = Listener(path)
    return unheard(listener, run=run, progress=progress) or judge_telemetry(listener, run=run)


def unheard(
    listener: Listener, *, run: str = ".", progress: Callable[[int, int], None] | None = None
) -> pb.Report | None:
    """Takes in all that the file holds now. The answer is None, or the report that says why it could not be taken in.

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
    except Exception as error:  # the border of one recording: it costs its own report only
        return _broken(listener, run, error)
    return None


def judge_telemetry(listener: Listener, *, run: str = ".", latest: bool = False) -> pb.Report:
    """Judges what was heard so far, or (`latest`) the last stretch of it: what holds now, while the training runs.

    Only MemoryError is raised.
    """
    report = telemetry_report.empty_report(run, listener.source)
    try:
        _judge(listener, report, latest)
    except MemoryError:
        raise
    except Exception as error:  # the border of one recording: it costs its own report only
        return _broken(listener, run, error)
    return report


def unreadable(listener: Listener, run: str, code: str, because: str) -> pb.Report:
    """The report of a file of which nothing can be told."""
    report = telemetry_report.empty_report(run, listener.source)
    trace_report.set_unreadable(report, code, because)
    return report


def _broken(listener: Listener, run: str, error: Exception) -> pb.Report:
    _log.exception("the telemetry of one process could not be judged")
    return unreadable(listener, run, "broken", f"{type(error).__name__}: {error}"[:300])


def _judge(listener: Listener, report: pb.Report, latest: bool) -> None:
    testimony = TelemetryRecording(listener.telemetry)
    telemetry_report.set_origin(report, testimony)
    found = list(telemetry_report.defects(testimony, listener.dropped))
    telemetry_report.set_health(report, found)
    if any(defect.fatal for defect in found):
        return
    bands = bands_of(testimony)
    telemetry_report.set_stretches(report, bands)
    changed = latest and len(bands) > 1
    if changed:
        testimony = TelemetryRecording(listener.telemetry, since=bands[-1].begin)
    telemetry_report.set_window(report, testimony)
    telemetry_report.set_account(report, testimony)
    measures = Measures(testimony)
    verdicts = judge_all(measures)
    answer = answer_of(verdicts)
    unused = gpu_unused.verdict_of(measures) if testimony.on_device else None
    if unused is not None:
        # What the idle device's account says is beside the point until the work is on it.
        verdicts, answer = (unused,), Answer(unused.regime, unused.judgement.share, "critical")
    telemetry_report.set_verdicts(report, verdicts, answer)
    telemetry_report.set_answer(report, answer, verdicts, telemetry_report.confidence_of(testimony, answer, found))
    if changed:
        phases.tell_that_it_is_the_latest(report)
