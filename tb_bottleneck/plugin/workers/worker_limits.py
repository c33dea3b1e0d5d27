"""How much of the machine the analysis may take, with the environment variables that change it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

GIB = 1 << 30
MOST = 1e6  # GiB or seconds: as good as no bound, and what the system still takes for one


def _spare_cores() -> int:
    """Cores this process may use, less one that is left to the server and the training beside it; at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores - 1)


@dataclass(frozen=True)
class WorkerLimits:
    """Bounds on the worker processes."""

    processes: int = 1  # at a time
    memory_bytes: int = 4 * GIB  # address space of one process; a trace of 284 MB needs about 1.4 GB at its worst
    seconds_per_file: float = 900.0  # a trace of 284 MB takes some seconds; a full disk or a lock may take for ever
    idle_seconds: float = 60.0  # a process without work ends after this long
    forsaken_seconds: float = 120.0  # nobody asked for this long (the tab asks every 30 s): nothing new is begun
    retry_seconds: float = 5.0  # a file that was still being written is read again after this long

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "WorkerLimits":
        """The defaults, or what TB_BOTTLENECK_PROCESSES, _MEMORY_GIB and _SECONDS_PER_FILE say.

        Raises:
            ValueError: a variable is no positive number; the message names it.
        """
        return cls(
            processes=int(_positive(environment, "TB_BOTTLENECK_PROCESSES", min(2, _spare_cores()))) or 1,
            memory_bytes=int(
                min(_positive(environment, "TB_BOTTLENECK_MEMORY_GIB", cls.memory_bytes / GIB), MOST) * GIB
            ),
            seconds_per_file=min(_positive(environment, "TB_BOTTLENECK_SECONDS_PER_FILE", cls.seconds_per_file), MOST),
        )


def _positive(environment: Mapping[str, str], name: str, default: float) -> float:
    given = environment.get(name, "")
    try:
        value = float(given) if given else default
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"the environment variable {name} is {given!r}; give a positive number, or leave it out")
    return value
