"""The analysis of a recording: its report, and the summary of its rank.

An analysis runs in this process or in a worker. Modules that only the cache needs are imported only if a task uses the
cache or writes its report, because their import takes longer than the diagnosis of a small trace.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_bottleneck.sources.snapshot import is_snapshot
from tb_bottleneck.sources.telemetry.event_files import is_event_file

if TYPE_CHECKING:
    from tb_bottleneck.attribution.trace_recording import Recording
    from tb_bottleneck.report.cache.report_store import FileIdentity, Store
    from tb_bottleneck.schema import bottleneck_pb2 as pb
    from tb_bottleneck.workers.ipc import Refusal, WorkerFailure


Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """One recording to analyse.

    `path` is its file, `run` the name of its run in the report. If `cache` is True, results in the cache of reports are
    used, and the cache is filled. If `summarise` is True, the rank is also summarised for the analysis of its job. If
    `write` is True, the report is also written next to the recording. If `for_list` is True, the parts of such a
    written report that a list shows suffice.
    """

    path: str
    run: str
    cache: bool = True
    summarise: bool = True
    write: bool = False
    for_list: bool = False


@dataclass(frozen=True)
class RankResult:
    """The result of a task.

    `report` is the report as serialised protobuf, `summary` the encoded summary of the rank (empty if there is none).
    `problem` says why the report could not be written next to the recording; it is empty if the report was written or
    the task did not ask for this.
    """

    report: bytes
    summary: bytes = b""
    problem: str = ""


def analyse(task: Task, progress: Progress | None = None) -> RankResult:
    """Analyses the recording of `task`: a trace, telemetry or a memory snapshot. Raises only MemoryError; other errors
    are stated in the report. `progress` is called with the finished and the total amount of work."""
    if is_event_file(task.path):
        from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry

        return RankResult(_packed(diagnose_telemetry(task.path, run=task.run, progress=progress)))
    if is_snapshot(task.path):
        from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot

        return RankResult(_packed(diagnose_snapshot(task.path, run=task.run)))
    if not task.cache and not task.write:
        report, summary = _analysed(task, progress)
        return RankResult(_packed(report), summary)
    return _with_files(task, progress)


def _with_files(task: Task, progress: Progress | None) -> RankResult:
    """Returns the result of one recording, from the cache or from a report next to the recording if possible. If the
    task asks for it, fills the cache and writes the report next to the recording."""
    from tb_bottleneck.report.cache.cached_diagnosis import is_repeatable
    from tb_bottleneck.report.cache.report_store import Store, identity_of

    identity = identity_of(task.path)
    store = Store.from_environment(os.environ) if task.cache else None
    report, summary = _saved(task, identity, store)
    analysed = report is None
    if report is None:
        report, summary = _analysed(task, progress)
    if identity is None or not is_repeatable(report) or identity_of(task.path) != identity:
        return RankResult(_packed(report), summary)  # not reusable, for example because the file has changed
    if analysed and store is not None:
        store.put(identity, report)
        if task.summarise:
            store.put_summary(identity, summary)
    return RankResult(_packed(report), summary, _written(task.path, identity, report) if task.write else "")


def _saved(task: Task, identity: "FileIdentity | None", store: "Store | None") -> "tuple[pb.Report | None, bytes]":
    """Returns the saved report and summary of the recording. `identity` is the current state of the file, or None if
    the file cannot be accessed. The returned report is None if no report was saved, if the task does not use the cache,
    or if the task needs a summary of the rank and no summary was saved. The summary may be empty."""
    from tb_bottleneck.report.cache import sidecar
    from tb_bottleneck.report.cache.cached_diagnosis import named

    if identity is None or not task.cache:
        return None, b""
    report = store.get(identity) if store else None
    if report is None and task.for_list:
        report = sidecar.read(task.path, identity)
    if report is None:
        return None, b""
    summary = store.get_summary(identity) if store and task.summarise else None
    if task.summarise and summary is None and report.HasField("membership"):
        return None, b""
    return named(report, task.path, task.run), summary or b""


def _analysed(task: Task, progress: Progress | None) -> "tuple[pb.Report, bytes]":
    """Analyses the trace of `task`. Returns its report and, if the task asks for it, the summary of the rank."""
    from tb_bottleneck.diagnosis.trace import diagnose

    kept: list[Recording] = []
    report = diagnose(task.path, run=task.run, progress=progress, keep=kept.append)
    if not task.summarise or not kept:
        return report, b""
    from tb_bottleneck.jobs.summary.extract import encoded_summary

    return report, encoded_summary(kept[0], task.path)


def _written(path: str, identity: "FileIdentity", report: "pb.Report") -> str:
    """Writes the report next to its trace at `path`. Returns a sentence about the error if the file cannot be written,
    otherwise an empty text."""
    from tb_bottleneck.report.cache import sidecar

    try:
        sidecar.write(path, identity, report)
    except OSError as error:
        return f"{sidecar.sidecar_path(path)} could not be written: {error.strerror}"
    return ""


def _packed(report: "pb.Report") -> bytes:
    return report.SerializeToString(deterministic=True)


def failed_result(task: Task, failure: "WorkerFailure | Refusal") -> RankResult:
    """Returns the result of a recording whose worker process gave none, because of `failure`."""
    from tb_bottleneck.workers.ipc import Refusal, WorkerFailure, failure_report

    if isinstance(failure, Refusal):
        failure = WorkerFailure("analysis_failed", failure.sentence)
    source = task.path.replace("\\", "/").rpartition("/")[2]
    return RankResult(_packed(failure_report(task.run, source, "trace", failure)))
