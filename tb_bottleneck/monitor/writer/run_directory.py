"""Where a monitor writes: a run directory of its own under the user's logdir, and how others find it.

    LOGDIR/tb_bottleneck/20261121-110503_rank0_4711/
    LOGDIR/tb_bottleneck/20261121-110503_3fa91c_rank0_4711/     one of several ranks: a mark of the job stands in
    between

It is its own because TensorBoard's Python loader shows one writer per directory: a second one would hide the user's own
scalars. Several ranks put their traces into rank 0's directory, so that they are judged as one job.
"""

import hashlib
import os
import re
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = "tb_bottleneck"
_NAME = re.compile(r"^\d{8}-\d{6}(_[0-9a-f]{6})?_rank\d{1,6}_\d{1,10}$", re.ASCII)
_REQUEST = "capture.request"
# What tells one job from another, and is the same for its ranks; only a digest of it is written.
_JOB = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID")
MOST_NAMESAKES = 256
ALIVE_S = 120.0
"""A monitor writes every few seconds; one that has not for this long is taken to have ended."""


@dataclass(frozen=True, slots=True)
class ProcessRank:
    """This process among those of its job."""

    rank: int
    world_size: int
    job: str
    """A mark that the ranks of a job share, empty where there is one rank."""


def process_rank(environment: Mapping[str, str] = os.environ) -> ProcessRank:
    """As torchrun and its like tell it in the environment; one rank where they tell nothing."""
    rank, world_size = _count(environment, "RANK", 0), _count(environment, "WORLD_SIZE", 1)
    if world_size < 2 or rank >= world_size:
        return ProcessRank(0, 1, "")
    text = "\0".join(environment.get(name, "") for name in _JOB)
    return ProcessRank(rank, world_size, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6])


def new_directory(logdir: Path, here: ProcessRank, now: float | None = None) -> Path:
    """Makes this process's run directory, under an absolute path: trainings change where they are. Raises OSError.

    It is never one that is there: containers number their processes from 1, so that those of a sweep on several
    machines may have one name at one moment. The later ones are then named after the next seconds.
    """
    began = time.time() if now is None else now
    job = f"_{here.job}" if here.job else ""
    for later in range(MOST_NAMESAKES + 1):
        start = time.strftime("%Y%m%d-%H%M%S", time.localtime(began + later))
        directory = logdir.absolute() / FOLDER / f"{start}{job}_rank{here.rank}_{os.getpid()}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            if later == MOST_NAMESAKES:
                raise
        else:
            break
    return directory


def trace_directory(own: Path, here: ProcessRank) -> Path:
    """Rank 0's directory of the same job: the newest, because a job may have been started again. Else our own."""
    if here.rank == 0:
        return own
    theirs = [path for path in own.parent.glob(f"*_{here.job}_rank0_*") if _NAME.match(path.name)]
    return max(theirs, key=lambda path: path.name, default=own)


def live_directories(logdir: Path, now: float | None = None) -> list[Path]:
    """The directories at any depth of a logdir that a monitor wrote to within the last ALIVE_S seconds."""
    now = time.time() if now is None else now
    found = []
    for folder, names, _ in os.walk(logdir):
        if os.path.basename(folder) == FOLDER:
            found += [Path(folder, name) for name in names if _NAME.match(name)]
            names.clear()
    return sorted(path for path in found if now - _last_written(path) < ALIVE_S)


def _last_written(directory: Path) -> float:
    times = [0.0]
    for path in directory.glob("*tfevents*"):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue  # it has gone meanwhile
    return max(times)


def request_capture(directory: Path) -> bool:
    """Puts the request for a trace there. False where one lies there already. Raises OSError."""
    try:
        os.close(os.open(directory / _REQUEST, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        return False
    return True


class CaptureRequests:
    """Looks whether a trace was asked for. Only that the file is there counts: it is never opened."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _REQUEST
        self._known: tuple[int, int] | None = None

    def take(self) -> bool:
        """Whether there is a new request; it is taken away. One that cannot be taken away counts once."""
        try:
            status = os.lstat(self._path)
        except OSError:
            self._known = None
            return False
        if (status.st_ino, status.st_mtime_ns) == self._known:
            return False
        self._known = (status.st_ino, status.st_mtime_ns)
        if stat.S_ISDIR(status.st_mode):
            return True
        try:
            os.unlink(self._path)
        except OSError:
            return True  # not ours to take away, so it is remembered instead
        self._known = None
        return True


def _count(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environment.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else otherwise
