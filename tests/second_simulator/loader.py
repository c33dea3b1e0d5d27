"""Model of torch.utils.data.DataLoader: worker processes, their storage, and the queue to the main process."""

from dataclasses import dataclass

from second_simulator.machine import Machine


@dataclass(frozen=True)
class Storage:
    """A store that all workers share. Once per `stall_every` it answers nothing for `stall`; times in microseconds."""

    latency: float = 80.0
    megabytes_per_s: float = 2500.0
    stall_every: float = 0.0
    stall: float = 0.0

    def read(self, start: float, busy_until: float, megabytes: float) -> tuple[float, float]:
        """Returns when a read ends, and until when it keeps the store from other reads."""
        begin = max(start, busy_until)
        taken = megabytes / self.megabytes_per_s * 1e6
        if self.stall_every and (begin // self.stall_every + 1) * self.stall_every < begin + taken:
            taken += self.stall
        return begin + taken + self.latency, begin + taken


class Loader:
    """An iterator over batches of some megabytes. `transform` is the CPU time per batch in microseconds."""

    def __init__(self, m: Machine, workers: int, megabytes: float, transform: float, store: Storage) -> None:
        self.m, self.workers, self.megabytes, self.transform, self.store = m, workers, megabytes, transform, store
        self._store_busy = 0.0
        self.restart(0.0)

    def restart(self, us: float) -> None:
        """Starts the iterator of an epoch: forks each worker in that time, and requests two batches of each."""
        with self.m.frame("torch/utils/data/dataloader.py(500): __iter__"):
            self.m.work("loader", us * self.workers)
        self._free = [self.m.now] * max(1, self.workers)
        self._done: list[float] = []
        self._taken = 0
        for _ in range(self.workers * 2):
            self._request()

    def _request(self) -> None:
        worker = len(self._done) % self.workers
        start = max(self.m.now, self._free[worker])
        read, self._store_busy = self.store.read(start, self._store_busy, self.megabytes)
        self._free[worker] = read + self.transform * self.m.slowdown * self.m.rng.lognormvariate(0.0, 0.15)
        self._done.append(self._free[worker])

    def next(self) -> None:
        m, name = self.m, "_MultiProcessingDataLoaderIter" if self.workers else "_SingleProcessDataLoaderIter"
        with (
            m.frame("torch/utils/data/dataloader.py(733): __next__"),
            m.annotation(f"enumerate(DataLoader)#{name}.__next__"),
        ):
            if self.workers:
                self._receive()
            else:
                self._fetch()

    def _receive(self) -> None:
        with self.m.frame("multiprocessing/queues.py(98): get"):
            with self.m.frame("<built-in method poll of select.poll object at 0x7f1c5d0>"):
                self.m.wait("loader", self._done[self._taken])
            with self.m.frame("<built-in function loads>"):
                self.m.work("loader", 120.0)
        self._taken += 1
        self._request()

    def _fetch(self) -> None:
        m, samples = self.m, 8
        for _ in range(samples):
            with m.frame("torch/utils/data/_utils/fetch.py(47): fetch"), m.frame("dataset.py(41): __getitem__"):
                with m.frame("<built-in method read of _io.BufferedReader object at 0x7f1c5e0>"):
                    end, self._store_busy = self.store.read(m.now, self._store_busy, self.megabytes / samples)
                    m.wait("loader", end)
                m.work("loader", self.transform / samples)
        collate = m.frame("torch/utils/data/_utils/collate.py(398): default_collate")
        with collate, m.op("aten::stack", [3, 224, 224], kind="loader"):
            m.work("loader", self.megabytes * 250.0)
