"""The course of the memory: over the step of the peak, by block, and over the steps."""

from tb_bottleneck.base.record import Record
from tb_bottleneck.memory.course.curve import MemoryCurve, curve_of
from tb_bottleneck.memory.course.history import MemoryHistory, history_of
from tb_bottleneck.memory.course.lifetimes import Lifetime, lifetimes_of
from tb_bottleneck.memory.course.recorded_memory import RecordedMemory
from tb_bottleneck.trace.table import Ints


class MemoryCourse(Record, frozen=True, eq=False):
    """What a recording shows over time; None or empty where it shows nothing."""

    curve: MemoryCurve | None
    lifetimes: list[Lifetime]
    history: MemoryHistory | None


def course_of(memory: RecordedMemory, edges: Ints) -> MemoryCourse:
    """Returns the course. `edges` has the begin of each step and the end of the last one, in ns."""
    return MemoryCourse(curve_of(memory, edges), lifetimes_of(memory, edges), history_of(memory, edges))
