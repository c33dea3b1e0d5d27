"""Which processes of a GPU belong to others, as far as the driver's list can be read from here."""

import os
from collections.abc import Set

from tb_bottleneck.monitor.samplers.gpu_driver import Refused
from tb_bottleneck.monitor.samplers.process_tree import family

HIDDEN = "the driver's list of processes does not hold this one: a container hides them, or we have not begun yet"


def own_processes() -> set[int]:
    """The ids of this process and of those under it."""
    return {os.getpid(), *(one.pid for one in family().relatives())}


def strangers(listed: Set[int], own: Set[int]) -> set[int]:
    """Those of the listed processes that are not ours.

    Raises Refused where none is: then the list is of another namespace of process ids (a container), or cut, and it
    would be wrong to say that we are alone.
    """
    if not listed & own:
        raise Refused(HIDDEN)
    return set(listed - own)
