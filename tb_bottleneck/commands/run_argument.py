"""What someone means by a run on the command line: a trace, a directory with the recordings of one run, or a report."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_bottleneck.errors import NotFound

if TYPE_CHECKING:
    from tb_bottleneck.commands.progress_bar import ProgressCallback
    from tb_bottleneck.comparison.runs.compared_run import JudgedRun, UnjudgedRun

REPORT_ENDINGS = (".bottlenecks.json", ".reports.json", "reports.json")
LARGEST_REPORT = 16 << 20  # bytes; the reports of a job of 256 ranks take some 10


@dataclass(frozen=True)
class RunFiles:
    """The files of one run, the oldest first: its traces, and what its monitor wrote."""

    traces: tuple[str, ...]
    telemetry: tuple[str, ...] = ()


def open_run(path: str, progress: "ProgressCallback | None" = None) -> "JudgedRun | UnjudgedRun":
    """Reads and judges the run at `path`: a trace, a directory, or a report that `diagnose` wrote.

    Raises:
        NotFound: nothing is there, no trace is in it, or it holds several runs.
    """
    from tb_bottleneck.comparison.runs.from_reports import run_from_reports
    from tb_bottleneck.comparison.runs.open_run import open_recordings

    if path.endswith(REPORT_ENDINGS):
        return run_from_reports(path, _text(path))
    run = recordings_of(path)
    return open_recordings(path, run.traces, run.telemetry, progress)


def recordings_of(path: str) -> RunFiles:
    """The files of the run at `path`.

    Raises:
        NotFound: nothing is there, no trace is in it, or it holds several runs.
    """
    from tb_bottleneck.sources.event_files import is_event_file
    from tb_bottleneck.sources.filesystem import status_of
    from tb_bottleneck.sources.logdir import scan

    if status_of(path).kind == "file":
        return RunFiles((path,))
    found = sorted(scan(path).recordings, key=lambda one: (one.mtime_ns, one.path))
    traces = [one for one in found if not is_event_file(one.path)]
    if not traces:
        only = "; its telemetry alone cannot be replayed: `tb-bottleneck capture` asks a running training for a trace"
        raise NotFound(
            f"no trace was found under {path}; looked for *.pt.trace.json and *.pt.trace.json.gz"
            + (only if found else "")
        )
    runs = sorted({recording.run for recording in traces})
    if len(runs) > 1:
        shown = ", ".join(runs[:4]) + (", ..." if len(runs) > 4 else "")
        raise NotFound(f"{path} holds {len(runs)} runs ({shown}); name one of them")
    events = (one.path for one in found if is_event_file(one.path))
    return RunFiles(tuple(one.path for one in traces), tuple(events))


def _text(path: str) -> bytes:
    """Raises NotFound where it is not there or no file of a report's size."""
    from tb_bottleneck.sources.filesystem import place_of, status_of

    status = status_of(path)
    if status.kind != "file" or status.size > LARGEST_REPORT:
        raise NotFound(f"{path} is no file that a report could be in")
    with place_of(path).open(path) as file:
        return file.read(LARGEST_REPORT)
