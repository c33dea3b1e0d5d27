"""The worker processes of a simulated loader."""

from simulate.program import Workers


class Loader:
    """Worker processes. Each creates its batches in turn, and pauses while `prefetch` of its batches are ready."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._taken = 0
        self._ready: list[int] = []
        for batch in range(workers.number * workers.prefetch):
            self._order(batch, 0)

    def take(self, now: int) -> int:
        """Returns the time when the next batch is available."""
        ready = max(now, self._ready[self._taken])
        self._taken += 1
        self._order(len(self._ready), ready)
        return ready

    def _order(self, batch: int, now: int) -> None:
        earlier = batch - self._workers.number
        begin = max(now, self._ready[earlier] if earlier >= 0 else 0)
        self._ready.append(begin + self._workers.load_ns[batch % len(self._workers.load_ns)])
