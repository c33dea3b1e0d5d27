"""The loader's worker processes: their number, the cores they use, their waits for a core, the bytes they read, and
their memory.

A worker is a process of multiprocessing: a fork of this process (with the same command line), or a new interpreter with
multiprocessing's spawn or fork server in its command line. Other child processes, such as a compiler, are not workers.
Workers end with an epoch, so the CPU time of each worker is counted separately. The time after the last reading of a
worker is lost; this is at most one interval.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tb_bottleneck.monitor.samplers.io import Clock, Rates, Seldom
from tb_bottleneck.monitor.samplers.processes import NO_PSS, Descendant, ProcessFiles, ProcessTree, process_tree
from tb_bottleneck.monitor.samplers.sampler import Reading

# The process name of a DataLoader's workers since torch 2.5.
_TORCH_WORKER = "pt_data_worker"
_CORE_WAIT, _READ, _PSS = "worker_core_wait", "worker_read", "worker_pss"
_NS_PER_S = 1e9
MAX_READ = 32
"""Maximum number of workers whose files in /proc are read, which takes about 20 µs per worker. The figures of the other
workers are estimated from these."""
_SPAWNED, _SERVED = "multiprocessing.spawn", "multiprocessing.forkserver"


class Workers:
    """Measures the worker processes of this process's loaders, and of its other multiprocessing pools."""

    every_s = 1.0

    def __init__(
        self,
        tree: ProcessTree | None = None,
        pid: int | None = None,
        clock: Clock = time.monotonic,
        root: Path = Path("/"),
    ) -> None:
        self._tree = tree if tree is not None else process_tree()
        self._pid = os.getpid() if pid is None else pid
        self._clock = clock
        self._own: tuple[str, ...] = ()
        self._kinds: dict[tuple[int, float, str], bool] = {}
        self._last: tuple[float, dict[tuple[int, float], float]] | None = None
        self._root = root
        self._rates = Rates(clock)
        self._seldom = Seldom(clock)

    def read(self) -> Iterator[Reading]:
        """Yields the number of workers, the cores they use (from the second reading on), their waits for a core, the
        bytes they read, and their memory."""
        now = self._clock()
        descendants = self._tree.descendants()
        workers = {(process.pid, process.began): process.cpu_s for process in descendants if self._is_worker(process)}
        living = {_identity(process) for process in descendants}
        self._kinds = {key: kind for key, kind in self._kinds.items() if key in living}
        yield Reading("worker_count", float(len(workers)))
        if self._last is not None and now > self._last[0]:
            began, before = self._last
            # A new worker began after the last reading, so all of its time counts.
            used = sum(max(cpu_s - before.get(worker, 0.0), 0.0) for worker, cpu_s in workers.items())
            yield Reading("worker_cores", used / (now - began))
        self._last = (now, workers)
        pids = [pid for pid, _ in workers]
        yield from self._of_files(pids)
        pss = self._seldom.read(lambda: self._pss(pids)) if pids else None
        if pss is not None:
            yield Reading(_PSS, pss)

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for those signals about other processes that this system does not provide."""
        own = ProcessFiles(self._root, self._pid)
        missing = {} if own.has_pss() else {_PSS: NO_PSS}
        if own.read_bytes() is None:
            missing |= dict.fromkeys((_CORE_WAIT, _READ), "only Linux has it, in /proc/PID")
        return missing

    def close(self) -> None:
        """Does nothing."""

    def _of_files(self, pids: list[int]) -> Iterator[Reading]:
        """Yields how long the workers with the ids `pids` waited for a core and the bytes that they read, per second
        since the last reading, from /proc. Both are estimated from the first MAX_READ processes."""
        counters: dict[tuple[str, int], float] = {}
        for pid in pids[:MAX_READ]:
            process = ProcessFiles(self._root, pid)
            for name, value in ((_CORE_WAIT, process.core_wait_ns()), (_READ, process.read_bytes())):
                if value is not None:
                    counters[name, pid] = value
        rates = self._rates.per_second(counters)
        for name, per_unit in ((_CORE_WAIT, _NS_PER_S), (_READ, 1.0)):
            found = [rate for (signal, _), rate in rates.items() if signal == name]
            if found:
                yield Reading(name, sum(found) / per_unit * len(pids) / len(found))

    def _pss(self, pids: list[int]) -> float | None:
        """Returns the proportional set size (PSS) of all workers in bytes, estimated from the first MAX_READ; None if
        it is unknown."""
        found = [ProcessFiles(self._root, pid).pss_bytes() for pid in pids[:MAX_READ]]
        known = [value for value in found if value is not None]
        return sum(known) * len(pids) / len(known) if known else None

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
    # The name is included because a process that executes another program keeps its id, but its name changes.
    return (process.pid, process.began, process.name)
