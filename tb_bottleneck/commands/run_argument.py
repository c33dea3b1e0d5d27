"""The argument RUN of the command line: a trace, a directory with the recordings of one run, or a report."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_bottleneck.errors import NotFound

if TYPE_CHECKING:
    from tb_bottleneck.commands.progress_bar import ProgressCallback
    from tb_bottleneck.comparison.runs.compared_run import JudgedRun, UnjudgedRun

REPORT_ENDINGS = (".bottlenecks.json", ".reports.json", "reports.json")
MAX_REPORT_BYTES = 16 << 20  # the reports of a job of 256 ranks take about 10 MB


@dataclass(frozen=True)
class RunFiles:
    """The files of one run, oldest first: its traces, and the event files of its monitor."""

    traces: tuple[str, ...]
    telemetry: tuple[str, ...] = ()


def open_run(path: str, progress: "ProgressCallback | None" = None) -> "JudgedRun | UnjudgedRun":
    """Reads and judges the run at `path`: a trace, a directory, or a report that `diagnose` wrote.

    Raises:
        NotFound: there is no such path, no trace in it, or it contains several runs.
    """
    from tb_bottleneck.comparison.runs.from_reports import run_from_reports
    from tb_bottleneck.comparison.runs.open_run import open_recordings

    if path.endswith(REPORT_ENDINGS):
        return run_from_reports(path, _text(path))
    run = recordings_of(path)
    return open_recordings(path, run.traces, run.telemetry, progress)


def recordings_of(path: str) -> RunFiles:
    """Returns the files of the run at `path`.

    Raises:
        NotFound: there is no such path, no trace in it, or it contains several runs.
    """
    from tb_bottleneck.sources.logdir import scan
    from tb_bottleneck.sources.paths import status_of
    from tb_bottleneck.sources.telemetry.event_files import is_event_file

    if status_of(path).kind == "file":
        return RunFiles((path,))
    recordings = [recording for recording in scan(path).recordings if not recording.is_snapshot]
    recordings.sort(key=lambda recording: (recording.mtime_ns, recording.path))
    traces = [recording for recording in recordings if not is_event_file(recording.path)]
    if not traces:
        hint = (
            "; its telemetry alone cannot be replayed: `tb-bottleneck capture` requests a trace from a running script"
        )
        raise NotFound(
            f"no trace was found under {path}; looked for *.pt.trace.json and *.pt.trace.json.gz"
            + (hint if recordings else "")
        )
    runs = sorted({recording.run for recording in traces})
    if len(runs) > 1:
        names = ", ".join(runs[:4]) + (", ..." if len(runs) > 4 else "")
        raise NotFound(f"{path} contains {len(runs)} runs ({names}); name one of them")
    events = (recording.path for recording in recordings if is_event_file(recording.path))
    return RunFiles(tuple(trace.path for trace in traces), tuple(events))


def _text(path: str) -> bytes:
    """Returns the content of a report file. Raises NotFound if there is no such file, or it is too large."""
    from tb_bottleneck.sources.paths import filesystem_of, status_of

    status = status_of(path)
    if status.kind != "file" or status.size > MAX_REPORT_BYTES:
        raise NotFound(f"{path} is not a report file")
    with filesystem_of(path).open(path) as file:
        return file.read(MAX_REPORT_BYTES)
