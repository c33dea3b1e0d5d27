"""Which process of how many this is."""

from tb_bottleneck.measures.measure import Measure, Missing
from tb_bottleneck.measures.telemetry.testimony import WITNESS, Testimony


def processes(testimony: Testimony) -> Measure | Missing:
    """Processes of the job (count)."""
    count = testimony.fact("world_size")
    return (
        Measure(count, "count", witness=WITNESS) if count else Missing("world_size is not among the facts of the run")
    )
