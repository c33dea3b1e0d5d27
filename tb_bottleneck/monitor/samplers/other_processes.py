"""Which processes of a GPU belong to others, as far as the driver's list can be read from here."""

import os
from collections.abc import Set

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError
from tb_bottleneck.monitor.samplers.process_tree import process_tree

HIDDEN = "the driver's list of processes does not hold this one: a container hides them, or we have not begun yet"


def own_processes() -> set[int]:
    """The ids of this process and of those under it."""
    return {os.getpid(), *(one.pid for one in process_tree().relatives())}


def other_processes(listed: Set[int], own: Set[int]) -> set[int]:
    """Those of the listed processes that are not ours.

    Raises DriverError where none is: then the list is of another namespace of process ids (a container), or cut, and it
    would be wrong to say that we are alone.
    """
    if not listed & own:
        raise DriverError(HIDDEN)
    return set(listed - own)
