"""The rows of a list of trainings: one row for each training, with the verdict of the training.

Short names of recordings in a list: without the folders that all of them share, and without the parts of file names
that only programs need.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.memory_alert import leading_alert
from tb_bottleneck.report.rank_rows import first_action, gain_of
from tb_bottleneck.report.trainings import Training
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


_SEVERITIES = ("critical", "warning", "info", "none")


@dataclass(frozen=True)
class Row:
    """One training of the list. `digest` is about the recording whose verdict is that of the training.

    `reports` are the reports of the training's recordings, first the one with the verdict of the training. `job` is
    None if the training is no job. `state` is the state of its review; empty without one.
    """

    name: str
    reports: tuple[pb.Report, ...]  # of its recordings, that one first
    digest: Digest
    job: pb.Job | None = None
    state: str = ""  # of its review

    @property
    def report(self) -> pb.Report:
        """The report with the verdict of the training."""
        return self.reports[0]

    @property
    def verdict(self) -> pb.Verdict | None:
        """The verdict of the training; for a job, the verdict of the whole job."""
        return self.job.verdict if self.job is not None else self.digest.verdict

    @property
    def alert(self) -> pb.MemoryAlert | None:
        """The memory problem of the training if it is more urgent than the verdict about the time, otherwise None."""
        return leading_alert(self.verdict) if self.verdict is not None else None

    @property
    def speedup(self) -> pb.Speedup | None:
        """The predicted gain: of the job for a job, otherwise of the whole plan or the leading finding; None if
        unknown."""
        if self.job is None:
            return self.digest.gain
        return gain_of(self.job)

    @property
    def action(self) -> str:
        """What to change first, as a sentence: for the memory problem if it is more urgent (see alert), otherwise for
        the verdict."""
        if self.alert is not None:
            return self.alert.action
        if self.job is None:
            return self.digest.action
        return first_action(self.job)

    @property
    def severity(self) -> str:
        """The severity of the memory problem if it is more urgent (see alert), otherwise that of the verdict; empty
        without a verdict."""
        if self.alert is not None:
            return self.alert.severity
        return self.verdict.severity if self.verdict is not None else ""

    @property
    def urgency(self) -> int:
        """The position of the severity in the order of severities; 0 is critical. Trainings without a verdict come
        last."""
        return _SEVERITIES.index(self.severity) if self.severity in _SEVERITIES else len(_SEVERITIES)

    @property
    def gain(self) -> float:
        """The predicted speed-up, at least 1; if the prediction is a bound, its expected value. 1 if nothing is
        predicted."""
        return max(self.speedup.expected, 1.0) if self.speedup is not None else 1.0

    @property
    def samples_per_step(self) -> float | None:
        """The samples per step of one process, from the first recording that has this figure; None if none has it."""
        known = [report.efficiency for report in self.reports if report.efficiency.HasField("samples_per_step")]
        return known[0].samples_per_step if known else None

    @property
    def samples_per_second(self) -> float | None:
        """Samples per step / mean step time; None if it is not known, and for jobs, because their ranks may share
        samples."""
        samples, step = self.samples_per_step, self.digest.step_ns
        return samples / (step / NS_PER_S) if samples and step and self.job is None else None

    @property
    def memory(self) -> pb.Memory | None:
        """The memory of the recording with the highest peak; None if no memory was recorded."""
        known = [report.memory for report in self.reports if report.memory.peak_bytes > 0]
        return max(known, key=lambda memory: memory.peak_bytes, default=None)

    @property
    def sources(self) -> str:
        """The evidence sources, the trusted one first, such as "trace, telemetry"; after the number of ranks for
        a job."""
        kinds = dict.fromkeys(kind_of(report) for report in self.reports)
        ranks = f"{len(self.job.ranks)} ranks: " if self.job is not None else ""
        return ranks + ", ".join(kinds)


def kind_of(report: pb.Report) -> str:
    """Returns "trace" if the evidence source of `report` is "both" (a trace with telemetry), otherwise this source."""
    return "trace" if report.evidence_source == "both" else report.evidence_source


# Maps the name of an order to the sorting key of a row; the row with the smallest key comes first. Among rows with
# equal keys, the most severe comes first, then the one with the largest gain.
SORTS: dict[str, Callable[[Row], float | str]] = {
    "gain": lambda row: -row.gain,
    "step": lambda row: -(row.digest.step_ns or 0.0),
    "lost": lambda row: -(row.digest.lost_share or 0.0),
    "rate": lambda row: row.samples_per_second or float("inf"),
    "memory": lambda row: -(row.memory.peak_bytes if row.memory is not None else 0.0),
    "severity": lambda row: row.urgency,
    "name": lambda row: row.name,
    "time": lambda row: -(recorded_at(row.report.source) or 0.0),
}


def rows_of(
    reports: Sequence[pb.Report],
    sort: str | None = "severity",
    *,
    trainings: Sequence[Training] | None = None,
    jobs: Mapping[tuple[int, ...], pb.Job] | None = None,
    states: Mapping[int, str] | None = None,
) -> list[Row]:
    """Returns one row for each training, sorted by `sort`, a key of SORTS; for None, in the order of the reports.

    If `trainings` is None, every report is a training of its own. `jobs` maps the positions of the ranks of a job to
    the job, and `states` the positions of reviewed reports to the states of their review.
    """
    known = trainings if trainings is not None else [Training((position,)) for position in range(len(reports))]
    names = short_names([reports[_named(training, reports)] for training in known])
    rows = [
        Row(
            name,
            tuple(reports[member] for member in training.members),
            Digest.of(reports[training.first]),
            (jobs or {}).get(training.ranks),
            (states or {}).get(training.first, ""),
        )
        for name, training in zip(names, known, strict=True)
    ]
    return rows if sort is None else sorted_rows(rows, sort)


def sorted_rows(rows: Sequence[Row], sort: str = "severity") -> list[Row]:
    """Returns the rows sorted by `sort`, a key of SORTS."""
    return sorted(rows, key=lambda row: (SORTS[sort](row), row.urgency, -row.gain, row.name))


def _named(training: Training, reports: Sequence[pb.Report]) -> int:
    """Returns the position of the recording that gives the training its name: the first trace, because all telemetry
    has the same name."""
    traces = (member for member in training.members if reports[member].evidence_source in ("trace", "both"))
    return next(traces, training.first)
