"""The monitor's own run directory under the user's logdir.

    LOGDIR/tb_bottleneck/20261121-110503_rank0_4711/
    LOGDIR/tb_bottleneck/20261121-110503_3fa91c_rank0_4711/     one of several ranks, with an id of the job

The monitor has its own directory because TensorBoard's Python loader shows only one writer per directory: a second
writer would hide the user's own scalars. Several ranks write their traces into rank 0's directory, so that the traces
are judged as one job.
"""

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = "tb_bottleneck"
_NAME = re.compile(r"^\d{8}-\d{6}(_[0-9a-f]{6})?_rank\d{1,6}_\d{1,10}$", re.ASCII)
_REQUEST = "capture.request"
_REQUEST_AT = re.compile(r"^(capture|machine)_at_(\d{1,12})\.request$", re.ASCII)
# These variables differ between jobs and are equal in all ranks of a job. Only a digest of their values is written.
_JOB = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_HERE = ("", "localhost", "127.0.0.1", "::1")
_RESTART = "TORCHELASTIC_RESTART_COUNT"
_RANKS = (
    ("RANK", "WORLD_SIZE"),  # torchrun, Accelerate, DeepSpeed, Ray Train, Lightning
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"),  # the batch script itself has no step, and is no rank
)
"""Environment variables with the rank and the number of ranks. The first group with all variables set is used."""
MAX_RENAMES = 256
ALIVE_S = 120.0
"""Seconds without a write after which a monitor counts as ended. A monitor writes every few seconds."""


@dataclass(frozen=True, slots=True)
class ProcessRank:
    """The rank of this process in its job."""

    rank: int
    world_size: int
    job: str
    """An id that the ranks of a job share, and that changes when the job is restarted; empty for a single rank."""
    run: str = ""
    """An id that the ranks of a job share, and that stays the same when the job is restarted; empty for a single
    rank."""
    restart: int = 0
    """How often the launcher has restarted the job."""


def process_rank(environment: Mapping[str, str] = os.environ, group: tuple[int, int] | None = None) -> ProcessRank:
    """Returns the rank of this process, from the variables in `environment` that torchrun and similar launchers set.

    Without these variables, as with torch.multiprocessing.spawn, the rank is that of torch's process group, if there is
    one: `group` is (rank, number of ranks). Otherwise, the process is a single rank."""
    names = next((names for names in _RANKS if all(name in environment for name in names)), _RANKS[0])
    rank, world_size = _count(environment, names[0], 0), _count(environment, names[1], 1)
    values = [environment.get(name, "") for name in _JOB]
    if world_size < 2 and group is not None:
        rank, world_size = group
        if values[0] in _HERE and not any(values[2:]):  # jobs may use one port, but only ranks have the same parent
            values.append(str(os.getppid()))
    if world_size < 2 or rank >= world_size:
        return ProcessRank(0, 1, "")
    return ProcessRank(
        rank,
        world_size,
        _digest([*values, environment.get(_RESTART, "")]),
        _digest(values),
        _count(environment, _RESTART, 0),
    )


def _digest(values: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(values).encode("utf-8", "replace")).hexdigest()[:6]


def new_directory(logdir: Path, here: ProcessRank, now: float | None = None) -> Path:
    """Creates the run directory of this process, whose rank is `here`, below `logdir`. Returns the absolute path of the
    directory, because a training may call chdir. `now` is the time in s since 1970, by default the present time. Raises
    OSError.

    The directory is always new. Containers number their processes from 1, so several processes of a sweep may choose
    the same name at the same time. A process whose name already exists uses the next free second in the name."""
    began = time.time() if now is None else now
    job = f"_{here.job}" if here.job else ""
    for extra_s in range(MAX_RENAMES + 1):
        start = time.strftime("%Y%m%d-%H%M%S", time.localtime(began + extra_s))
        directory = logdir.absolute() / FOLDER / f"{start}{job}_rank{here.rank}_{os.getpid()}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            if extra_s == MAX_RENAMES:
                raise
        else:
            break
    return directory


def trace_directory(own: Path, here: ProcessRank) -> Path:
    """Returns the newest directory of rank 0 of the same job. Returns `own` if this process has rank 0, or if there is
    no such directory."""
    if here.rank == 0:
        return own
    candidates = [path for path in own.parent.glob(f"*_{here.job}_rank0_*") if _NAME.match(path.name)]
    return max(candidates, key=lambda path: path.name, default=own)


def live_directories(logdir: Path, now: float | None = None) -> list[Path]:
    """Returns the run directories below `logdir`, at any depth, to which a monitor wrote within the last ALIVE_S
    seconds."""
    now = time.time() if now is None else now
    directories = []
    for folder, names, _ in os.walk(logdir):
        if os.path.basename(folder) == FOLDER:
            directories += [Path(folder, name) for name in names if _NAME.match(name)]
            names.clear()
    return sorted(path for path in directories if now - _last_written(path) < ALIVE_S)


def _last_written(directory: Path) -> float:
    times = [0.0]
    for path in directory.glob("*tfevents*"):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue  # deleted meanwhile
    return max(times)


def request_capture(directory: Path, at_step: int | None = None, kind: str = "capture") -> bool:
    """Creates a request for a trace in the run directory `directory`: a trace of the next steps, or of those from
    `at_step` on. If `kind` is "machine", requests a measurement of the machine after `at_step` instead.

    Returns False if the same request exists already, otherwise True. Raises OSError."""
    name = _REQUEST if at_step is None else f"{kind}_at_{at_step}.request"
    try:
        os.close(os.open(directory / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        return False
    return True


class CaptureRequests:
    """Checks whether somebody requested a trace, or a measurement of the machine. A request is a file. Only its name
    matters: it is never opened."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _REQUEST
        self._handled: tuple[int, int] | None = None

    def take_step(self, kind: str = "capture") -> int | None:
        """Returns the step from which on a trace (or `kind`, see request_capture) is requested, and deletes the
        request; None if there is no such request with a step.

        A request that cannot be deleted is ignored, because it would be found again and again."""
        try:
            names = os.listdir(self._path.parent)
        except OSError:
            return None
        for name in names:
            found = _REQUEST_AT.match(name)
            if found and found[1] == kind:
                with contextlib.suppress(OSError):
                    os.unlink(self._path.parent / name)
                    return int(found[2])
        return None

    def take(self) -> bool:
        """Returns True if there is a new request without a step, and deletes the request. A request that cannot be
        deleted counts only once."""
        try:
            status = os.lstat(self._path)
        except OSError:
            self._handled = None
            return False
        if (status.st_ino, status.st_mtime_ns) == self._handled:
            return False
        self._handled = (status.st_ino, status.st_mtime_ns)
        if stat.S_ISDIR(status.st_mode):
            return True
        try:
            os.unlink(self._path)
        except OSError:
            return True  # the request cannot be deleted, so it is remembered in `_handled`
        self._handled = None
        return True


def _count(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environment.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else otherwise
