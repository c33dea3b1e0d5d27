"""The run directories of the monitor (monitor/writer/run_directory.py), and which of them are of one training.

LOGDIR/tb_bottleneck/20261121-110503_rank0_4711/
LOGDIR/tb_bottleneck/20261121-110503_3fa91c_rank0_4711/     one of several ranks, with an id of the job
"""

import re
from collections.abc import Iterable
from functools import lru_cache

_DIRECTORY = re.compile(r"\d{8}-\d{6}_(?:([0-9a-f]{6})_)?rank(\d+)_\d+$", re.ASCII)
_FOLDER = "tb_bottleneck"


@lru_cache(maxsize=65536)
def logdir_of(directory: str) -> str:
    """Returns the logdir that a monitor's directory lies in; an empty text for another directory."""
    parent, _, name = with_slashes(directory).rpartition("/")
    logdir, _, ours = parent.rpartition("/")
    return logdir if ours == _FOLDER and _DIRECTORY.match(name) else ""


def place_of(directory: str) -> str:
    """Returns what the recordings of one training have in common: the logdir of their monitor, or their directory."""
    return logdir_of(directory) or with_slashes(directory)


def launches_of(directories: Iterable[str]) -> dict[str, str]:
    """Returns a name for the training that each directory is of: equal names for the ranks of one job, otherwise the
    directory.

    A job that is started again may have the same id: a rank that appears again begins the next training.
    """
    launches: dict[str, str] = {}
    first: dict[str, tuple[str, set[str]]] = {}  # by the job: its last training, and the ranks of it so far
    for directory in sorted(set(directories), key=with_slashes):
        parent, _, name = with_slashes(directory).rpartition("/")
        match = _DIRECTORY.match(name)
        if match is None or not match[1]:
            launches[directory] = directory
            continue
        job, rank = f"{parent}/{match[1]}", match[2]
        if job not in first or rank in first[job][1]:
            first[job] = directory, set()
        first[job][1].add(rank)
        launches[directory] = first[job][0]
    return launches


def with_slashes(path: str) -> str:
    """Returns the path with slashes, also on Windows."""
    return path.replace("\\", "/")
