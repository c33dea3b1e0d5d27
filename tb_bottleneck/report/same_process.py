"""Determines which recordings are of the same process or training, by their directories and ranks.

The run directories of the monitor (monitor/writer/run_directory.py) have these names:

    LOGDIR/tb_bottleneck/20261121-110503_rank0_4711/
    LOGDIR/tb_bottleneck/20261121-110503_3fa91c_rank0_4711/     one of several ranks, with an id of the job

The monitor writes traces into the directory of its telemetry, or into the directory of rank 0. A profiler in the
training itself writes into the logdir that was given to the monitor.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from tb_bottleneck.schema import bottleneck_pb2 as pb

_DIRECTORY = re.compile(r"\d{8}-\d{6}_(?:([0-9a-f]{6})_)?rank(\d+)_\d+$", re.ASCII)
_FOLDER = "tb_bottleneck"


@lru_cache(maxsize=65536)
def logdir_of(directory: str) -> str:
    """Returns the logdir of the monitor's run directory `directory`; "" for any other directory."""
    parent, _, name = with_slashes(directory).rpartition("/")
    logdir, _, ours = parent.rpartition("/")
    return logdir if ours == _FOLDER and _DIRECTORY.match(name) else ""


def place_of(directory: str) -> str:
    """Returns the logdir for a monitor's run directory, otherwise `directory` with slashes.

    Recordings of one training have the same place."""
    return logdir_of(directory) or with_slashes(directory)


def launches_of(directories: Iterable[str]) -> dict[str, str]:
    """Returns a dict: directory -> name of its training. The directories of the ranks of one job have the same name.
    The name of any other training is its directory.

    Directories contain the id of their job. A restarted job may keep its id. Therefore, a second directory of a rank
    with the same id begins another training."""
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
    """Returns `path` with slashes instead of backslashes."""
    return path.replace("\\", "/")


Located = Sequence[tuple[str, pb.Report]]
"""Reports with their directories."""

_OF_A_TRACE = ("trace", "both")


def pairs_of(located: Located) -> Iterator[tuple[int, int]]:
    """Yields for each pair of a trace and telemetry about the same process their positions in `located`."""
    places: dict[str, list[int]] = {}
    for position, (directory, _) in enumerate(located):
        places.setdefault(place_of(directory), []).append(position)
    launches = launches_of(directory for directory, _ in located)
    for positions in places.values():
        series = [at for at in positions if located[at][1].evidence_source == "telemetry"]
        traces = [at for at in positions if located[at][1].evidence_source in _OF_A_TRACE]
        for telemetry in series if traces else ():
            directory, report = located[telemetry]
            ranked = [trace for trace in traces if _same_rank(located[trace][1], report)]
            own = [trace for trace in ranked if launches[located[trace][0]] == launches[directory]]
            for trace in own or _beside(telemetry, ranked, series, located):
                yield trace, telemetry


def _beside(telemetry: int, traces: list[int], series: list[int], located: Located) -> list[int]:
    """Returns the traces that a profiler of the training wrote into the logdir of the monitor of `telemetry`. The
    result is empty unless there is exactly one such trace, and no other telemetry of the same rank.

    All numbers are positions in `located`."""
    if not logdir_of(located[telemetry][0]):
        return []
    found = [trace for trace in traces if not logdir_of(located[trace][0])]
    rivals = [one for one in series if _same_rank(located[one][1], located[telemetry][1])]
    return found if len(found) == len(rivals) == 1 else []


def _same_rank(one: pb.Report, other: pb.Report) -> bool:
    return not (one.HasField("rank") and other.HasField("rank")) or one.rank == other.rank
