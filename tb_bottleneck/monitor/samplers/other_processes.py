"""Finds processes on a GPU that do not belong to this run, in the driver's process list."""

import os
from collections.abc import Set

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError
from tb_bottleneck.monitor.samplers.process_tree import process_tree

HIDDEN = "the driver's process list does not contain this process: a container hides it, or it does not use the GPU yet"


def own_processes() -> set[int]:
    """Returns the ids of this process and its descendants."""
    return {os.getpid(), *(process.pid for process in process_tree().descendants())}


def other_processes(listed: Set[int], own: Set[int]) -> set[int]:
    """Returns the listed processes that are not this run's own.

    Raises DriverError if no listed process is an own one: then the list is from another namespace of process ids (a
    container), or incomplete, and an empty result would be wrong.
    """
    if not listed & own:
        raise DriverError(HIDDEN)
    return set(listed - own)
