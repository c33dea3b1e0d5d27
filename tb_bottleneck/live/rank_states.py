"""Determines what each rank of a job does now, from its heartbeat, the time, and the processes of this machine."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from statistics import median

import psutil

from tb_bottleneck.live.heartbeats import Heartbeat, Located, shown

# The following limits are chosen, not measured: a hang has to be reported within about 15 s, and heartbeats are written
# every 5 s.
MISSED_S = 8.0
"""If a heartbeat of this machine is older, its process is looked for. A heartbeat is written every 5 s."""
SILENT_S = 20.0
"""If a heartbeat is older, its process counts as silent, provided that the process is on another machine or still
exists."""
QUIET_S, QUIET_STEPS = 6.0, 5.0
"""A rank is late if it has finished no step for more than QUIET_S seconds and more than QUIET_STEPS usual steps."""
STILL_S = 8.0
"""A late rank hangs if its training thread has been at the same lines for at least this time, and for at least three
usual steps. In LONG_PHASES, the limit is LONG_PHASE_S."""
QUIET_PAUSES = 1.5
"""A late rank whose thread moves is busy if its pause is longer than this factor times its longest pause so far."""
LONG_PHASES = ("checkpoint", "compilation")
"""Phases in which a thread may stay at one line for long, because native code or another process does the work."""
LONG_PHASE_S = 600.0


class RankState(Enum):
    """What a rank does now. The values are words that users see."""

    STARTING = "starting"
    RUNNING = "running"
    BUSY = "busy"  # no step for long, but its thread moves: evaluation, a checkpoint
    WAITING = "waiting"  # for other ranks
    HANGS = "hangs"
    STOPPED = "stopped"  # by a signal
    KILLED = "killed"
    SILENT = "silent"
    FAILED = "failed"
    ENDED = "ended"


ENDS = (RankState.ENDED, RankState.FAILED, RankState.KILLED)
EXCHANGES = ("collective", "backward")
"""Phases in which a rank may wait for others. DistributedDataParallel exchanges gradients in the backward pass."""


@dataclass(frozen=True)
class Rank:
    """A rank of a job with its newest heartbeat. `quiet_s` is the time in s since its last finished step (or since its
    start, before the first step), `age_s` the time in s since the heartbeat. `restarts` is how often the rank was
    restarted."""

    directory: str
    beat: Heartbeat
    state: RankState
    quiet_s: float
    age_s: float
    restarts: int = 0

    @property
    def number(self) -> int:
        """The number of the rank."""
        return self.beat.rank

    @property
    def place(self) -> str:
        """The line at which the training thread is, as FILE:LINE, or an empty text."""
        return "" if self.beat.where is None else f"{self.beat.where[0]}:{self.beat.where[1]}"


@dataclass(frozen=True)
class LiveJob:
    """A job, which may be a single process. `ranks` are in ascending order. `missing` are ranks without a heartbeat."""

    run: str
    folder: str
    """The absolute path of the logdir of the job's monitors."""
    ranks: tuple[Rank, ...]
    world_size: int
    missing: tuple[int, ...]

    @property
    def is_over(self) -> bool:
        """True if every rank has ended, or has written no heartbeat for a long time (LONG_PHASE_S)."""
        return all(rank.state in ENDS or rank.age_s > LONG_PHASE_S for rank in self.ranks)

    @property
    def step(self) -> int:
        """The last step that all ranks have finished."""
        return min(rank.beat.step for rank in self.ranks)


def jobs_of(beats: Iterable[Located], now_ns: float, machine: str, status: Callable[[Heartbeat], str]) -> list[LiveJob]:
    """Groups heartbeats into jobs, the newest first. `now_ns` is the current time in ns since 1970, `machine` the
    digest of this machine. `status` returns the state of the process of a heartbeat of this machine: "gone", "stopped"
    or "there"."""
    by_job: defaultdict[tuple[str, str, int], list[Located]] = defaultdict(list)
    for located in beats:
        alone = located.beat.world_size == 1
        by_job[
            shown(located.directory), located.directory if alone else located.beat.job, located.beat.world_size
        ].append(located)
    jobs = [_job(key[0], key[2], members, now_ns, machine, status) for key, members in by_job.items()]
    return sorted(jobs, key=lambda job: max(rank.beat.began_unix_ns for rank in job.ranks), reverse=True)


def _job(
    run: str, world_size: int, members: list[Located], now_ns: float, machine: str, status: Callable[[Heartbeat], str]
) -> LiveJob:
    by_rank: defaultdict[int, list[Located]] = defaultdict(list)
    for located in members:
        by_rank[located.beat.rank].append(located)
    latest = max(located.beat.restart for located in members)
    ranks = []
    for _, each in sorted(by_rank.items()):
        newest = max(each, key=lambda located: (located.beat.restart, located.beat.began_unix_ns))
        if newest.beat.restart == latest:  # a job may have restarted with fewer ranks
            ranks.append(_rank(newest, len(each) - 1, now_ns, machine, status))
    world_size = max(rank.beat.world_size for rank in ranks)
    seen = {rank.number for rank in ranks}
    missing = tuple(number for number in range(world_size) if number not in seen)
    folder = os.path.dirname(os.path.dirname(members[0].path))
    return LiveJob(run, folder, tuple(ranks), world_size, missing)


def _rank(located: Located, restarts: int, now_ns: float, machine: str, status: Callable[[Heartbeat], str]) -> Rank:
    beat = located.beat
    age_s = max(now_ns - beat.unix_ns, 0.0) / 1e9
    since = beat.began_unix_ns if beat.step_unix_ns is None else beat.step_unix_ns
    quiet_s = max(now_ns - since, 0.0) / 1e9
    state = _state(beat, age_s, quiet_s, status(beat) if beat.host == machine and age_s > MISSED_S else "unknown")
    return Rank(located.directory, beat, state, quiet_s, age_s, restarts)


def _state(beat: Heartbeat, age_s: float, quiet_s: float, process: str) -> RankState:
    if beat.state in ("ended", "failed"):
        return RankState.FAILED if beat.state == "failed" else RankState.ENDED
    if process in ("gone", "stopped"):
        return RankState.KILLED if process == "gone" else RankState.STOPPED
    if age_s > SILENT_S:
        return RankState.SILENT
    usual_s, longest_s = (beat.usual_step_ns or 0.0) / 1e9, beat.longest_pause_ns / 1e9
    if beat.step < 0 and quiet_s < LONG_PHASE_S:
        return RankState.STARTING
    if quiet_s <= max(QUIET_S, QUIET_STEPS * usual_s):
        return RankState.RUNNING
    if beat.world_size > 1 and beat.phase in EXCHANGES and beat.still_s >= STILL_S / 2:
        return RankState.WAITING
    if beat.still_s >= (LONG_PHASE_S if beat.phase in LONG_PHASES else max(STILL_S, 3 * usual_s)):
        return RankState.HANGS
    return RankState.BUSY if quiet_s > QUIET_PAUSES * longest_s else RankState.RUNNING


def process_status(beat: Heartbeat) -> str:
    """Returns the state of the process that wrote `beat` on this machine: "gone", "stopped" or "there"."""
    try:
        process = psutil.Process(beat.pid)
        if process.create_time() * 1e9 > beat.began_unix_ns:  # another process with the same number
            return "gone"
        status = process.status()
    except psutil.NoSuchProcess:
        return "gone"
    except psutil.Error:
        return "there"
    if status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
        return "gone"
    return "stopped" if status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) else "there"


def typical(values: Iterable[float]) -> float:
    """Returns the median of `values`, or 0 if there are none."""
    several = list(values)
    return median(several) if several else 0.0
