"""Limits on the resources of the worker processes, and the environment variables that change them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

GIB = 1 << 30
MAX_LIMIT = 1e6  # GiB or seconds: practically unlimited, and still a valid limit for the system


def _spare_cores() -> int:
    """Returns the cores that this process may use, minus one for the server and a training on the same machine; at
    least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores - 1)


@dataclass(frozen=True)
class WorkerLimits:
    """Limits on the worker processes."""

    processes: int = 1  # at a time
    memory_bytes: int = 4 * GIB  # address space of one process; a trace of 284 MB needs at most about 1.4 GB
    seconds_per_file: float = 900.0  # a trace of 284 MB takes a few seconds; a file system may hang indefinitely
    idle_seconds: float = 60.0  # a process without work ends after this long
    abandoned_seconds: float = 120.0  # without a request for this long, nothing is analysed; the tab asks every 30 s
    retry_seconds: float = 5.0  # a file that was still being written is read again after this long

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "WorkerLimits":
        """Returns the defaults, changed by TB_BOTTLENECK_PROCESSES, _MEMORY_GIB and _SECONDS_PER_FILE.

        Raises:
            ValueError: a variable is not a positive number; the message names it.
        """
        return cls(
            processes=int(_positive(environment, "TB_BOTTLENECK_PROCESSES", min(2, _spare_cores()))) or 1,
            memory_bytes=int(
                min(_positive(environment, "TB_BOTTLENECK_MEMORY_GIB", cls.memory_bytes / GIB), MAX_LIMIT) * GIB
            ),
            seconds_per_file=min(
                _positive(environment, "TB_BOTTLENECK_SECONDS_PER_FILE", cls.seconds_per_file), MAX_LIMIT
            ),
        )


def _positive(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"the environment variable {name} is {text!r}; set it to a positive number, or unset it")
    return value
