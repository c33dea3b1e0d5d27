"""The loader's worker processes: their number, and the cores they use.

A worker is a process of multiprocessing: a fork of this process (with the same command line), or a new interpreter with
multiprocessing's spawn or fork server in its command line. Other child processes, such as a compiler, are not workers.
Workers end with an epoch, so the time of each is counted separately; the time after its last reading is lost, at most
one interval.
"""

import os
import time
from collections.abc import Iterator, Mapping

from tb_bottleneck.monitor.samplers.process_tree import Descendant, ProcessTree, process_tree
from tb_bottleneck.monitor.samplers.rates import Clock
from tb_bottleneck.monitor.samplers.sampler import Reading

# The process name of torch's workers since 2.5.
_TORCH_WORKER = "pt_data_worker"
_SPAWNED, _SERVED = "multiprocessing.spawn", "multiprocessing.forkserver"


class Workers:
    """Worker processes of this process's loaders, and of its other multiprocessing pools."""

    every_s = 1.0

    def __init__(self, tree: ProcessTree | None = None, pid: int | None = None, clock: Clock = time.monotonic) -> None:
        self._tree = tree if tree is not None else process_tree()
        self._pid = os.getpid() if pid is None else pid
        self._clock = clock
        self._own: tuple[str, ...] = ()
        self._kinds: dict[tuple[int, float, str], bool] = {}
        self._last: tuple[float, dict[tuple[int, float], float]] | None = None

    def read(self) -> Iterator[Reading]:
        """Yields the count, and from the second reading on the cores."""
        now = self._clock()
        descendants = self._tree.descendants()
        workers = {(process.pid, process.began): process.cpu_s for process in descendants if self._is_worker(process)}
        living = {_identity(process) for process in descendants}
        self._kinds = {key: kind for key, kind in self._kinds.items() if key in living}
        yield Reading("worker_count", float(len(workers)))
        if self._last is not None and now > self._last[0]:
            began, before = self._last
            # A new process began after the last reading, so all of its time counts.
            used = sum(max(cpu_s - before.get(worker, 0.0), 0.0) for worker, cpu_s in workers.items())
            yield Reading("worker_cores", used / (now - began))
        self._last = (now, workers)

    def missing(self) -> Mapping[str, str]:
        """Returns nothing: available on every system."""
        return {}

    def close(self) -> None:
        """Does nothing."""

    def _is_worker(self, process: Descendant) -> bool:
        if process.name == _TORCH_WORKER:
            return True
        key = _identity(process)
        if key not in self._kinds:
            command = self._tree.command(process.pid)
            if not command:
                return False  # unknown yet: try again at the next reading
            self._kinds[key] = self._looks_like_worker(process, command)
        return self._kinds[key]

    def _looks_like_worker(self, process: Descendant, command: tuple[str, ...]) -> bool:
        self._own = self._own or self._tree.command(self._pid)
        text = " ".join(command)
        # The fork server itself is a child of this process; its own children have the same command line.
        forked_by_server = _SERVED in text and process.parent != self._pid
        return command == self._own or _SPAWNED in text or forked_by_server


def _identity(process: Descendant) -> tuple[int, float, str]:
    # A process that executes another program keeps its id; its name changes.
    return (process.pid, process.began, process.name)
