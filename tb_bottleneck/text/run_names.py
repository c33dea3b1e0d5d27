"""Short names of recordings in a list: without the folders that all of them share, and without the parts of file names
that only programs need."""

import re
from collections.abc import Sequence
from itertools import takewhile

from tb_bottleneck.schema import bottleneck_pb2 as pb

_ENDING = re.compile(r"(\.pt)?(\.trace)?\.json(\.(gz|zst|lz4))?$")
# torch.profiler appends the time of writing to the name of the worker (ms or ns since 1970).
_WORKER_AND_TIME = re.compile(r"(.+)\.([12]\d{12})(\d{6})?$")
_EVENT_FILE = re.compile(r"events\.out\.tfevents\.([12]\d{9})\.")
# The directory of the monitor (monitor/writer/run_directory.py); the name of the file also contains the date and the
# process.
_MONITOR_DIRECTORY = re.compile(r"(^|/)tb_bottleneck(/\d{8}-\d{6}[^/]*)?$")


def short_names(reports: Sequence[pb.Report]) -> list[str]:
    """Returns a name for each report: its run without the folders that all runs share, and its file. Different files
    have different names."""
    runs = ["" if report.run == "." else report.run for report in reports]
    shared = _shared_folders([_MONITOR_DIRECTORY.sub("", run) for run in runs])
    names = [_joined(run[shared:], _stem(report.source)) for run, report in zip(runs, reports, strict=True)]
    return [
        name if names.count(name) == 1 else _joined(runs[place][shared:], reports[place].source, whole=True)
        for place, name in enumerate(names)
    ]


def recorded_at(source: str) -> float | None:
    """Returns the time in the file name `source`, in seconds since 1970; None if the name has no time."""
    event_file = _EVENT_FILE.match(source)
    if event_file:
        return float(event_file[1])
    trace = _WORKER_AND_TIME.fullmatch(_ENDING.sub("", source))
    return int(trace[2]) / 1000 if trace else None


def _stem(source: str) -> str:
    if _EVENT_FILE.match(source):
        return "telemetry"
    stem = _ENDING.sub("", source) or source
    trace = _WORKER_AND_TIME.fullmatch(stem)
    return trace[1] if trace else stem


def _joined(run: str, name: str, whole: bool = False) -> str:
    folder = run if whole else _MONITOR_DIRECTORY.sub("", run)
    return f"{folder}/{name}" if folder else name


def _shared_folders(runs: Sequence[str]) -> int:
    """Returns the number of characters in the folders that all runs begin with, including slashes. The last folder of a
    run is never counted."""
    folders = zip(*(run.split("/")[:-1] for run in runs), strict=False)
    shared = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, folders)]
    return len("/".join([*shared, ""]))
