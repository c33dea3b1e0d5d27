"""Groups the recordings by training. The groups are built again only where something changed."""

import os
from collections.abc import Sequence
from functools import lru_cache
from operator import is_

from tb_bottleneck.base.measure import Record
from tb_bottleneck.plugin.state.job_index import KnownJob
from tb_bottleneck.plugin.turns import in_turns
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.same_process import Located, place_of, with_slashes
from tb_bottleneck.report.trainings import trainings_of
from tb_bottleneck.schema.bottleneck_pb2 import MemoryAlert, Report, TrainingJob
from tb_bottleneck.sources.logdir import RecordingFile

RECORDINGS_AT_A_TIME, PLACES_AT_A_TIME = 1000, 100

Known = Sequence[tuple[RecordingFile, Digest | None]]
"""Pairs of a recording and its digest; the digest is None until the recording is analysed."""


class GroupedTraining(Record, frozen=True, gc=False):
    """The recordings of one training. The verdict of the first one is the verdict of the training.

    `because` says why the verdict of the other source of evidence (trace or telemetry) is trusted; it is empty if that
    verdict is not trusted. `job` is the summary of the job with its verdict, if the training is a job. `alert` is the
    memory problem of the first recording, if it has one."""

    recordings: tuple[RecordingFile, ...]
    because: str = ""
    job: TrainingJob | None = None
    alert: MemoryAlert | None = None


class _Place(Record, frozen=True, gc=False):
    """The trainings in one place (see `place_of_path`), and the inputs from which they were built."""

    recordings: tuple[RecordingFile, ...]
    digests: tuple[Digest | None, ...]
    jobs: tuple[KnownJob, ...]
    trainings: tuple[GroupedTraining, ...]


class TrainingIndex:
    """Groups recordings by training. Any thread may call `trainings`, because shared data is replaced and never
    modified."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def trainings(self, known: Known, jobs: Sequence[KnownJob] = ()) -> tuple[GroupedTraining, ...]:
        """Returns the trainings of the recordings in `known`, sorted by place (see `place_of_path`). `known` has pairs
        of a recording and its digest. `jobs` are the jobs that have a report."""
        by_place: dict[str, list[tuple[RecordingFile, Digest | None]]] = {}
        for recording, digest in in_turns(known, RECORDINGS_AT_A_TIME):
            by_place.setdefault(place_of_path(recording.path), []).append((recording, digest))
        jobs_by_place: dict[str, list[KnownJob]] = {}
        for job in jobs:
            jobs_by_place.setdefault(place_of_path(job.first.path), []).append(job)
        last = self._places
        self._places = places = {
            name: _place(each, tuple(jobs_by_place.get(name, ())), last.get(name))
            for name, each in in_turns(by_place.items(), PLACES_AT_A_TIME)
        }
        return tuple(training for place in places.values() for training in place.trainings)


@lru_cache(maxsize=65536)
def place_of_path(path: str) -> str:
    """Returns the place of the file `path`: its directory or, in a run directory of a monitor, the monitor's logdir."""
    return place_of(with_slashes(os.path.dirname(path)))


def directory_of(recording: RecordingFile) -> str:
    """Returns the directory of a recording, written with slashes on all systems."""
    return with_slashes(os.path.dirname(recording.path))


def _place(known: Known, jobs: tuple[KnownJob, ...], last: _Place | None) -> _Place:
    recordings, digests = tuple(recording for recording, _ in known), tuple(digest for _, digest in known)
    if last is not None and (last.recordings, last.jobs) == (recordings, jobs) and all(map(is_, last.digests, digests)):
        return last
    return _Place(recordings, digests, jobs, tuple(_grouped(recordings, digests, jobs)))


def _grouped(
    recordings: Sequence[RecordingFile], digests: Sequence[Digest | None], jobs: Sequence[KnownJob]
) -> list[GroupedTraining]:
    if len(recordings) == 1:
        return [GroupedTraining((recordings[0],))]
    briefs = [_brief(recording, digest) for recording, digest in zip(recordings, digests, strict=True)]
    located = [(directory_of(recording), brief) for recording, brief in zip(recordings, briefs, strict=True)]
    if len({brief.evidence_source for brief in briefs}) > 1:
        from tb_bottleneck.report.cross_check import join

        located = [(directory, joined) for (directory, _), joined in zip(located, join(located), strict=True)]
    position = {recording: at for at, recording in enumerate(recordings)}
    known = {tuple(position[rank] for rank in job.recordings): job for job in jobs}
    judged = {ranks: position[job.first] for ranks, job in known.items()}
    return [
        GroupedTraining(
            tuple(recordings[member] for member in training.members),
            next((other.because for other in located[training.first][1].others if other.trusted), ""),
            _job(training.ranks, located, known.get(training.ranks)),
            _alert(located[training.first][1]),
        )
        for training in trainings_of(located, judged)
    ]


def _brief(recording: RecordingFile, digest: Digest | None) -> Report:
    return digest.brief if digest is not None else Report(run=recording.run, evidence_source=recording.kind)


def _alert(report: Report) -> MemoryAlert | None:
    return report.verdict.memory_alert if report.verdict.HasField("memory_alert") else None


def _job(ranks: Sequence[int], located: Located, known: KnownJob | None) -> TrainingJob | None:
    """Returns the summary of a job; None if `ranks`, the indices of its ranks in `located`, is empty.

    Without a report of the job (`known` is None), the summary has no verdict: accounts of single ranks may name a rank
    that does not hold up the others."""
    if known is not None:
        return known.summary
    return TrainingJob(world_size=located[ranks[0]][1].world_size, ranks=len(ranks)) if ranks else None
