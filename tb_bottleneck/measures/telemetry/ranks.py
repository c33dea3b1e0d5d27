"""Which process of how many this is."""

from tb_bottleneck.attribution.telemetry.telemetry_recording import WITNESS, Testimony
from tb_bottleneck.measure import Measure, Missing


def world_size(testimony: Testimony) -> Measure | Missing:
    """Processes of the job (count)."""
    count = testimony.fact("world_size")
    return (
        Measure(count, "count", witness=WITNESS) if count else Missing("world_size is not among the facts of the run")
    )
