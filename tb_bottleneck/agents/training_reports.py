"""The reports of the trainings in one folder. Each training has one verdict from its traces, telemetry and ranks.

Also lists the recordings under one logdir, with the ids that the tab uses: nothing outside the logdir has an id.
"""

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from google.protobuf import json_format

from tb_bottleneck.agents.workers import Tell, Workers
from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.plugin.http.comparison_routes import MONITOR_FOLDER
from tb_bottleneck.plugin.http.job_route import MAX_COMPUTED
from tb_bottleneck.plugin.state.run_index import LogdirScan, LruCache, id_of, scan_logdir
from tb_bottleneck.plugin.workers.questions import JobQuestion, RecordingQuestion, SavedJobQuestion, TraceFile
from tb_bottleneck.report.cross_check import join
from tb_bottleneck.report.jobs import jobs_in
from tb_bottleneck.report.trainings import judged_jobs, trainings_of
from tb_bottleneck.review.notes import names_of
from tb_bottleneck.review.subjects import roots_of
from tb_bottleneck.schema.bottleneck_pb2 import Job, Report
from tb_bottleneck.schema.job_pb2 import JobAnswer
from tb_bottleneck.sources.logdir import RecordingFile, Root

FRESH_SECONDS = 2.0
"""How long a scan is reused. Agents call in bursts, but an agent that recorded again needs the new files soon."""


@dataclass(frozen=True)
class Recordings:
    """The recordings that one scan of the logdir found."""

    scan: LogdirScan

    @cached_property
    def folders(self) -> dict[str, list[RecordingFile]]:
        """Maps the folder of each run to the recordings in this folder. Recordings in the monitor's own folders belong
        to the folder above."""
        found: dict[str, list[RecordingFile]] = {}
        for recording in self.scan.listing.recordings:
            found.setdefault(folder_of(recording), []).append(recording)
        return found

    def named(self, name: str) -> RecordingFile:
        """Returns the recording whose id or name is `name`. Its name is RUN/FILE, as `list_runs` shows it.

        Raises:
            NotFound: no recording has this id or name.
        """
        if name in self.scan.by_id:
            return self.scan.by_id[name]
        for recording in self.scan.listing.recordings:
            if name == names_of(recording)[1]:
                return recording
        raise NotFound("there is no recording with this id (any more); list_runs lists the ids")

    def trace(self, name: str) -> RecordingFile:
        """Returns the trace whose id or name is `name`. For other recordings, returns the newest trace of their folder.

        Raises:
            NotFound: there is no such recording, or its folder has no trace.
        """
        recording = self.named(name)
        traces = [each for each in self.folders[folder_of(recording)] if each.is_trace]
        if recording.is_trace:
            return recording
        if not traces:
            raise NotFound("there is no trace beside this recording; how_to_record says how to make one")
        return max(traces, key=lambda each: (each.mtime_ns, each.path))


def folder_of(recording: RecordingFile) -> str:
    """Returns the run of `recording`, without the monitor's own folder at the end of the path."""
    parts = recording.run.split("/")
    return "/".join(parts[: parts.index(MONITOR_FOLDER)]) or "." if MONITOR_FOLDER in parts else recording.run


class AgentLogdir:
    """A logdir, or the directories of a `--logdir_spec`, that is scanned on request. All methods are thread-safe.

    Raises:
        NotFound: one of the directories is not a local directory.
    """

    def __init__(self, logdir: str) -> None:
        self.roots: Sequence[Root] = roots_of(logdir)
        self._lock = threading.Lock()
        self._last: Recordings | None = None
        self._ended = 0.0  # monotonic seconds

    def recordings(self) -> Recordings:
        """Returns all recordings. Scans again if the last scan is older than FRESH_SECONDS."""
        with self._lock:
            if self._last is None or time.monotonic() - self._ended > FRESH_SECONDS:
                self._last = Recordings(scan_logdir(self.roots))
                self._ended = time.monotonic()
            return self._last


MAX_FOLDER = 64
"""Largest number of recordings of a folder that are analysed together. Of a larger folder, only one recording is
analysed."""

MAX_REPORTS = 512
"""Largest number of reports that are kept in memory. Each report takes about 100 KB."""


@dataclass(frozen=True)
class AnalysedTraining:
    """A training with its recordings and their joined reports. The report with the verdict is the first one."""

    recordings: tuple[RecordingFile, ...]
    reports: tuple[Report, ...]
    job: Job | None = None
    note: str = ""  # what was not analysed

    @property
    def report(self) -> Report:
        """The report with the verdict of the training; for a job, the report of the rank that delays the others."""
        return self.reports[0]


class Trainings:
    """Analyses folders, and keeps the reports of unchanged files. All methods must be called from the same event
    loop."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._reports: LruCache[RecordingFile, Report] = LruCache(MAX_REPORTS)
        self._locks: LruCache[str, asyncio.Lock] = LruCache(MAX_REPORTS)

    async def of(self, recording: RecordingFile, known: Recordings, tell: Tell) -> AnalysedTraining:
        """Returns the training that `recording` belongs to. Raises Unusable if `recording` does not exist any more."""
        folder = folder_of(recording)
        for training in await self.in_folder(folder, known, tell, recording):
            if recording in training.recordings:
                return training
        raise Unusable("the recording is gone")

    async def in_folder(
        self, folder: str, known: Recordings, tell: Tell, only: RecordingFile | None = None
    ) -> list[AnalysedTraining]:
        """Returns the trainings of `folder`. `tell` is called with the progress.

        If the folder has more than MAX_FOLDER recordings, only one is analysed and returned: `only`, or the newest
        recording if `only` is None."""
        files = known.folders.get(folder, [])
        note = ""
        if len(files) > MAX_FOLDER:
            note = f"The folder has {len(files)} recordings; this is one of them alone. `tb-bottleneck list` shows all."
            files = [only or max(files, key=lambda each: each.mtime_ns)]
        lock = self._locks.get(folder) or asyncio.Lock()
        self._locks.put(folder, lock)
        async with lock:  # if several calls are about one folder, the first one analyses the folder
            reports = [await self._report(file, number, len(files), tell) for number, file in enumerate(files)]
        directories = [os.path.dirname(file.path) for file in files]
        joined = join(zip(directories, reports, strict=True))
        jobs = {tuple(ranks): await self._job([files[at] for at in ranks], known, tell) for ranks in jobs_in(joined)}
        judged = judged_jobs({ranks: job for ranks, job in jobs.items() if job is not None}, joined)
        return [
            AnalysedTraining(
                tuple(files[at] for at in training.members),
                tuple(joined[at] for at in training.members),
                jobs.get(training.ranks),
                note or ("" if not training.ranks or jobs.get(training.ranks) else _NO_JOB),
            )
            for training in trainings_of(list(zip(directories, joined, strict=True)), judged)
        ]

    async def _report(self, file: RecordingFile, number: int, count: int, tell: Tell) -> Report:
        kept = self._reports.get(file)
        if kept is not None:
            return kept

        async def tell_of_all(share: float) -> None:
            await tell((number + share) / count)

        report = await self._workers.report(file, tell_of_all)
        self._reports.put(file, report)  # a file that grew since is another RecordingFile
        return report

    async def _job(self, ranks: Sequence[RecordingFile], known: Recordings, tell: Tell) -> Job | None:
        """Returns the job that consists of `ranks`, from its saved report. Without a usable saved report, computes the
        job from the traces if it has at most MAX_COMPUTED ranks. Returns None if it has more ranks, or if its traces
        cannot be used."""
        traces = tuple(TraceFile.of(id_of(rank), rank) for rank in ranks)
        run, saved = ranks[0].run, [each for each in known.scan.listing.saved_jobs if each.run == ranks[0].run]
        questions: list[RecordingQuestion] = []
        if saved:
            files = tuple(TraceFile.of("", each) for each in saved)
            questions.append(SavedJobQuestion(traces[0], run, files, ""))
        if len(ranks) <= MAX_COMPUTED:
            questions.append(JobQuestion(traces[0], run, traces))
        for question in questions:
            try:
                return json_format.Parse(await self._workers.ask(question, tell), JobAnswer()).job
            except Unusable:
                continue
        return None


_NO_JOB = "The ranks were not judged together; `tb-bottleneck diagnose --write` does that, for any number of ranks."
