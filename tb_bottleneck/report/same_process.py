"""Tells which trace and which telemetry are about the same process, by their directories and ranks.

The monitor writes traces into the directory of its telemetry, or into that of rank 0; a profiler of the training's own
writes into the logdir that was given to the monitor.
"""

from collections.abc import Iterator, Sequence

from tb_bottleneck.report.monitor_directories import launches_of, logdir_of, place_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

Located = Sequence[tuple[str, pb.Report]]
"""Reports with their directories."""

_OF_A_TRACE = ("trace", "both")


def pairs_of(located: Located) -> Iterator[tuple[int, int]]:
    """Yields the positions of a trace and of telemetry about the same process, for each such pair."""
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
    """Returns the trace in the logdir of a monitor, if it is the only one there and the telemetry is the only one."""
    if not logdir_of(located[telemetry][0]):
        return []
    found = [trace for trace in traces if not logdir_of(located[trace][0])]
    rivals = [one for one in series if _same_rank(located[one][1], located[telemetry][1])]
    return found if len(found) == len(rivals) == 1 else []


def _same_rank(one: pb.Report, other: pb.Report) -> bool:
    return not (one.HasField("rank") and other.HasField("rank")) or one.rank == other.rank
