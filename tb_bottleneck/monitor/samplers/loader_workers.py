"""The loader's worker processes: how many live, and how many cores they used.

A worker is what multiprocessing makes: a fork of this process (the same command line), or a new interpreter whose
command line names multiprocessing's spawn or fork server. Other processes below this one, such as a compiler's, are
none. Workers vanish at the end of an epoch, so what each used is added up one by one; what one used after it was last
looked at is lost, one reading's worth at most.
"""

import os
import time
from collections.abc import Iterator, Mapping

from tb_bottleneck.monitor.samplers.process_tree import Descendant, ProcessTree, process_tree
from tb_bottleneck.monitor.samplers.rates import Clock
from tb_bottleneck.monitor.samplers.sampler import Reading

# torch names its workers so from 2.5 on.
_TORCH_WORKER = "pt_data_worker"
_SPAWNED, _SERVED = "multiprocessing.spawn", "multiprocessing.forkserver"


class Workers:
    """Worker processes of this process's loaders, and of any other multiprocessing that feeds it."""

    every_s = 1.0

    def __init__(self, of: ProcessTree | None = None, pid: int | None = None, clock: Clock = time.monotonic) -> None:
        self._family = of if of is not None else process_tree()
        self._pid = os.getpid() if pid is None else pid
        self._clock = clock
        self._own: tuple[str, ...] = ()
        self._kinds: dict[tuple[int, float, str], bool] = {}
        self._last: tuple[float, dict[tuple[int, float], float]] | None = None

    def read(self) -> Iterator[Reading]:
        """The count at once, the cores from the second reading on."""
        now = self._clock()
        relatives = self._family.relatives()
        workers = {(one.pid, one.began): one.cpu_s for one in relatives if self._is_worker(one)}
        self._kinds = {key: kind for key, kind in self._kinds.items() if key in {_identity(one) for one in relatives}}
        yield Reading("worker_count", float(len(workers)))
        if self._last is not None and now > self._last[0]:
            began, before = self._last
            # One that was not there before began meanwhile, so all that it used was used meanwhile.
            used = sum(max(cpu_s - before.get(worker, 0.0), 0.0) for worker, cpu_s in workers.items())
            yield Reading("worker_cores", used / (now - began))
        self._last = (now, workers)

    def missing(self) -> Mapping[str, str]:
        """Known everywhere."""
        return {}

    def close(self) -> None:
        """Nothing is open."""

    def _is_worker(self, one: Descendant) -> bool:
        if one.name == _TORCH_WORKER:
            return True
        key = _identity(one)
        if key not in self._kinds:
            command = self._family.command(one.pid)
            if not command:
                return False  # nothing to judge by yet: look again at the next reading
            self._kinds[key] = self._looks_like_worker(one, command)
        return self._kinds[key]

    def _looks_like_worker(self, one: Descendant, command: tuple[str, ...]) -> bool:
        self._own = self._own or self._family.command(self._pid)
        said = " ".join(command)
        # The fork server itself is our child; what it serves has its command line too.
        served = _SERVED in said and one.parent != self._pid
        return command == self._own or _SPAWNED in said or served


def _identity(one: Descendant) -> tuple[int, float, str]:
    # A process that becomes another program keeps its id; its name changes.
    return (one.pid, one.began, one.name)
