"""Declares commands and their argument RUN, which is a trace, a directory with the recordings of a run, or a report."""

import argparse
import re
import shutil
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tb_bottleneck.base.errors import NotFound, Unusable, did_you_mean
from tb_bottleneck.version import __version__

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.commands.terminal import ProgressCallback
    from tb_bottleneck.comparison.runs.compared_run import JudgedRun, UnjudgedRun


MIN_WIDTH = 40  # characters


_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser whose error messages about unknown commands, options and values suggest the most similar known one.

    `suggest_on_error` of Python 3.14 makes no suggestions for options.
    """

    def error(self, message: str) -> NoReturn:
        """Prints the message with a suggestion, and exits with status 2."""
        choice = _CHOICE.search(message)
        super().error(message + (did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""))

    def parse_known_args(self, *arguments: Any, **options: Any) -> Any:
        """Parses the arguments. Reports an unknown argument with the usage of this command, not of the main parser."""
        parsed, unknown = super().parse_known_args(*arguments, **options)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(unknown[0], known)}")
        return parsed, unknown


def add_subparser(
    commands: "Subparsers", name: str, summary: str, description: str, examples: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """Adds the command `name` to `commands`, and returns the parser of the command.

    `summary` is shown in the list of commands, `examples` below the options. `description` is wrapped to the width of
    the terminal; `examples` is not wrapped. `usage` replaces the usage line that argparse generates; None keeps it.
    """
    width = max(shutil.get_terminal_size().columns - 2, MIN_WIDTH)
    return commands.add_parser(
        name,
        help=summary,
        usage=usage,
        description=textwrap.fill(description, width),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


REPORT_ENDINGS = (".bottlenecks.json", ".reports.json", "reports.json")
MAX_REPORT_BYTES = 16 << 20  # the reports of a job of 256 ranks take about 10 MB


class RunFiles(NamedTuple):
    """The paths of the files of one run, oldest first. `telemetry` are the event files that the run's monitor wrote."""

    traces: tuple[str, ...]
    telemetry: tuple[str, ...] = ()


def open_run(
    path: str, progress: "ProgressCallback | None" = None, needs_trace: bool = True
) -> "JudgedRun | UnjudgedRun":
    """Reads and judges the run at `path`, which is a trace, a directory, or a report that `diagnose` wrote.

    Raises:
        NotFound: `path` does not exist, contains several runs, or contains no trace; with `needs_trace` False, it
            contains no telemetry either.
    """
    from tb_bottleneck.comparison.runs.compared_run import open_recordings, open_telemetry
    from tb_bottleneck.comparison.runs.runs_from_reports import run_from_reports, run_of

    if path.endswith(REPORT_ENDINGS):
        return run_from_reports(path, _text(path))
    run = recordings_of(path, needs_trace)
    if not run.traces:
        return run_of(path, [report for _, report, _ in open_telemetry(path, run.telemetry)])
    return open_recordings(path, run.traces, run.telemetry, progress)


def recordings_of(path: str, needs_trace: bool = True) -> RunFiles:
    """Returns the files of the run at `path`, a file or a directory. Raises NotFound as `open_run`."""
    from tb_bottleneck.sources.logdir import scan
    from tb_bottleneck.sources.paths import status_of
    from tb_bottleneck.sources.telemetry.event_files import is_event_file

    if status_of(path).kind == "file":
        return RunFiles((path,))
    recordings = [recording for recording in scan(path).recordings if not recording.is_snapshot]
    recordings.sort(key=lambda recording: (recording.mtime_ns, recording.path))
    traces = [recording for recording in recordings if not is_event_file(recording.path)]
    if not traces and (needs_trace or not recordings):
        hint = (
            "; its telemetry alone cannot be replayed: `tb-bottleneck capture` requests a trace from a running script"
        )
        raise NotFound(
            f"no trace was found under {path}; looked for *.pt.trace.json, *.pt.trace.json.gz and *.pftrace"
            + (hint if recordings else "")
        )
    runs = sorted({recording.run for recording in traces or recordings})
    if len(runs) > 1:
        names = ", ".join(runs[:4]) + (", ..." if len(runs) > 4 else "")
        raise NotFound(f"{path} contains {len(runs)} runs ({names}); name one of them")
    events = (recording.path for recording in recordings if is_event_file(recording.path))
    return RunFiles(tuple(trace.path for trace in traces), tuple(events))


def _text(path: str) -> bytes:
    """Returns the content of a report file. Raises NotFound if `path` is not a file, or if the file is too large."""
    from tb_bottleneck.sources.paths import filesystem_of, status_of

    status = status_of(path)
    if status.kind != "file" or status.size > MAX_REPORT_BYTES:
        raise NotFound(f"{path} is not a report file")
    with filesystem_of(path).open(path) as file:
        return file.read(MAX_REPORT_BYTES)


def version_text() -> str:
    """Returns the version of the package, and which reader of traces is active: native or pure.

    The reader is imported in this function, so that other commands do not import it at their start."""
    from tb_bottleneck.native import native_scan

    try:
        reader = "pure" if native_scan() is None else "native"
    except Unusable as error:
        reader = f"none: {error}"
    return f"{__version__} (reader: {reader})"
