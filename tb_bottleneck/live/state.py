"""The state of all jobs that train under a logdir, as one object for the terminal, the tab and scripts."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tb_bottleneck.base.machine import machine_digest
from tb_bottleneck.live.collectives import Divergence, first_divergence
from tb_bottleneck.live.heartbeats import Heartbeat, Heartbeats
from tb_bottleneck.live.rank_states import LiveJob, Rank, jobs_of, process_status
from tb_bottleneck.live.verdict import verdict_of
from tb_bottleneck.live.wording import LiveVerdict
from tb_bottleneck.sources.flight_recorder import dumps_in, is_dump_name

TIMES = ("wall", "loader_wait", "transfer", "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging",
         "garbage_collection", "thread_cpu", "device_busy")  # fmt: skip
OVER_S = 600.0
"""Time in s for which a finished job is still shown."""


@dataclass(frozen=True)
class LiveState:
    """A job, and the verdict about what delays the job."""

    job: LiveJob
    verdict: LiveVerdict

    def as_json(self, brief: bool = False) -> dict[str, Any]:
        """Returns the state as JSON-ready values. If `brief` is True, leaves out the figures of the ranks. Names that
        end in `_s` are in s, names that end in `_ns` in ns."""
        job, verdict = self.job, self.verdict
        return {
            "run": job.run,
            "world_size": job.world_size,
            "step": job.step,
            "verdict": {
                "cause": verdict.cause,
                "severity": verdict.severity,
                "headline": verdict.headline,
                "fix": verdict.fix,
                "ranks": list(verdict.ranks),
                "place": verdict.place,
                "stalled": verdict.is_stall,
                "since_s": verdict.since_s,
                "waiting": list(verdict.waiting),
                "excess_ns": verdict.excess_ns,
            },
            "missing_ranks": list(job.missing),
            "ranks": [_rank_json(rank) | ({} if brief else _figures_json(rank)) for rank in job.ranks],
        }


def _rank_json(rank: Rank) -> dict[str, Any]:
    return {
        "rank": rank.number,
        "state": rank.state.value,
        "directory": rank.directory,
        "step": rank.beat.step,
        "age_s": round(rank.age_s, 1),
    }


def _figures_json(rank: Rank) -> dict[str, Any]:
    return {
        "quiet_s": round(rank.quiet_s, 1),
        "phase": rank.beat.phase,
        "place": rank.place,
        "restarts": rank.restarts,
        "recent_ns": {name: round(rank.beat.recent[name]) for name in TIMES if name in rank.beat.recent},
        "samples": rank.beat.recent.get("samples"),
        "device": rank.beat.device,
        "history": rank.beat.history,
        "stacks": [
            {"thread": stack.thread, "frames": [f"{file}:{line} {name}" for file, line, name in stack.frames]}
            for stack in rank.beat.stacks
        ],
    }


class LiveJobs:
    """Reads the state of the jobs under a logdir. `read` can be called repeatedly. Not thread-safe."""

    def __init__(
        self, logdir: str, clock: Callable[[], float] = time.time, status: Callable[[Heartbeat], str] = process_status
    ) -> None:
        self._beats = Heartbeats(logdir)
        self._clock, self._status = clock, status
        self._machine = machine_digest()
        self._divergences: dict[str, tuple[tuple[tuple[str, int], ...], Divergence | None]] = {}

    def read(self, directories: Mapping[str, str] | None = None, over: bool = False) -> list[LiveState]:
        """Returns the jobs that train or ended less than OVER_S ago, newest first. If `over` is True, returns all jobs.

        `directories` maps the absolute paths of the run directories to their names. If it is None, the directories
        below the logdir are searched for.
        """
        now_ns = self._clock() * 1e9
        jobs = jobs_of(self._beats.read(directories), now_ns, self._machine, self._status)
        shown = [job for job in jobs if over or not _is_old(job)]
        return [LiveState(job, self._with_collectives(job, verdict_of(job))) for job in shown]

    def _with_collectives(self, job: LiveJob, verdict: LiveVerdict) -> LiveVerdict:
        """If the job has stalled, and dumps of torch's Flight Recorder in the job's folder show a difference between
        the ranks, adds a sentence about it to the headline of `verdict`."""
        if not verdict.is_stall or job.world_size == 1:
            return verdict
        try:
            files = [entry for entry in os.scandir(job.folder) if is_dump_name(entry.name)]
            known = tuple(sorted((entry.name, entry.stat().st_mtime_ns) for entry in files))
        except OSError:
            return verdict
        if not known:
            return verdict
        if self._divergences.get(job.folder, ((), None))[0] != known:
            self._divergences[job.folder] = known, first_divergence(dumps_in(job.folder))
        divergence = self._divergences[job.folder][1]
        return (
            verdict
            if divergence is None
            else replace(verdict, headline=f"{verdict.headline} Flight Recorder: {divergence.sentence}")
        )


def _is_old(job: LiveJob) -> bool:
    return job.is_over and min(rank.age_s for rank in job.ranks) > OVER_S
