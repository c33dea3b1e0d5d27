"""Reads blocks and scans events in threads, ahead of the thread that uses the events.

Groups of blocks of JSON are scanned with the native scanner, several groups at the same time. The pure reader reads the
blocks in Python. Blocks are cut into texts (JSON lists of complete events) before the texts of earlier blocks are read.
If the scanner refuses a text, the cuts from this text on are undone, and the pure reader continues from the same state.
Therefore both readers return the same events.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice, repeat, takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from tb_bottleneck.base.machine import usable_cores
from tb_bottleneck.native import Categories, Scan
from tb_bottleneck.sources.scan.results import Scanned, with_decoded

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from tb_bottleneck.native.scanner import Result

T = TypeVar("T")

LARGEST_GROUP = 8
"""Most blocks that one call of the scanner scans: 2 MB. The call returns each distinct key of these blocks once."""

MOST_THREADS = 8
"""Most scanning threads. The main thread, which builds the tables, cannot keep more threads busy."""


class Texts(Protocol):
    """The state of the pure reader, which works without the native scanner, between two blocks.

    `exact` is True if times are read as exact decimals. `pending` is the text that is kept for the next block. `ended`
    is True after the end of the list of events."""

    exact: bool
    pending: bytes
    ended: bool

    def cut(self, block: bytes) -> bytes | None:
        """Returns the kept text and `block`, up to the last boundary between two events in `block`, as a JSON list.
        Keeps the rest of `block` in `pending`. Returns None and changes nothing if `block` has no boundary."""


class _Flight(NamedTuple):
    """A group of blocks that a thread is scanning. `result` waits for the end of the scan and returns its result."""

    blocks: list[bytes]
    pending: bytes  # of the pure reader, before the group was cut
    result: Callable[[], "Result | int"]


def calls_ahead(calls: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Yields the results of `calls` in their order. While the caller uses a result, up to `threads` further calls run
    in threads; if `threads` is 0, none. The iterator of `calls` runs in the caller's thread."""
    if not threads:
        yield from (call() for call in calls)
        return
    from concurrent.futures import ThreadPoolExecutor  # this import takes 8 ms

    threads = min(threads, MOST_THREADS)
    pool = ThreadPoolExecutor(threads, "tb_bottleneck reader")
    flights: deque[Future[T]] = deque()
    try:
        for call in calls:
            flights.append(pool.submit(call))
            if len(flights) > threads:
                yield flights.popleft().result()
        while flights:
            yield flights.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def blocks_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the blocks. If a file has at least LARGEST_GROUP blocks, another thread reads and inflates the later
    blocks, one group ahead."""
    first = list(islice(blocks, LARGEST_GROUP))
    yield from first
    if len(first) == LARGEST_GROUP:
        groups = calls_ahead(repeat(lambda: list(islice(blocks, LARGEST_GROUP))), 1)
        yield from chain.from_iterable(takewhile(bool, groups))


class ScanAhead:
    """Scans the blocks of a file with the native scanner, in threads ahead of the caller.

    `texts` is the state of the reader in pure Python; it cuts blocks at boundaries between events. `categories()`
    returns the value that is passed to `scan` as its `categories`.

    The first groups are scanned one after the other, so that a small file needs no threads. Then up to `threads` groups
    are scanned at the same time, while another thread reads and inflates the blocks of the next group. `threads` is at
    most MOST_THREADS; by default it is the number of usable cores.
    """

    def __init__(
        self,
        texts: Texts,
        blocks: Iterator[bytes],
        scan: Scan,
        categories: Callable[[], Categories],
        threads: int | None = None,
    ) -> None:
        self._texts = texts
        self._blocks = blocks
        self._scan = scan
        self._categories = categories
        self._threads = min(usable_cores() if threads is None else threads, MOST_THREADS)
        self._pool: ThreadPoolExecutor | None = None
        self._inflated: Future[list[bytes]] | None = None
        self._returned: deque[bytes] = deque()
        self._flights: deque[_Flight] = deque()
        self._group = 1
        self._single = 0  # number of the next blocks that must be scanned one by one, after a refusal

    def __iter__(self) -> Iterator[Scanned | bytes]:
        """Yields the scanned events, and the blocks that the pure reader must read, in the order of the file."""
        try:
            while True:
                self._fill()
                if self._flights:
                    yield self._first()
                elif (block := self._next()) is not None:
                    yield block
                else:
                    return
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)

    def _fill(self) -> None:
        while len(self._flights) < (1 if self._pool is None else self._threads) and not self._texts.ended:
            if (flight := self._flight()) is None:
                return
            self._flights.append(flight)

    def _flight(self) -> _Flight | None:
        """Starts the scan of the next group of blocks. Returns None if the next block cannot be cut between events, or
        there is no block."""
        pending = self._texts.pending
        blocks: list[bytes] = []
        texts: list[bytes] = []
        size = 1 if self._single else self._group
        while len(texts) < size and (block := self._next()) is not None:
            text = self._texts.cut(block)
            if text is None:
                self._returned.appendleft(block)
                break
            blocks.append(block)
            texts.append(text)
        if not texts:
            return None
        self._single = max(self._single - len(blocks), 0)
        scan = partial(self._scan, tuple(texts), self._categories(), self._texts.exact)
        return _Flight(blocks, pending, scan if self._pool is None else self._pool.submit(scan).result)

    def _first(self) -> Scanned | bytes:
        """Returns the events of the oldest group. If the scanner refused the group, undoes the cuts of this group and
        of the later ones, and returns the group's first block, with which the pure reader must continue."""
        flight = self._flights.popleft()
        result = flight.result()
        scanned = None if isinstance(result, int) else with_decoded(result, self._texts.exact)
        if scanned is not None:
            if self._group == LARGEST_GROUP and self._threads > 1 and self._pool is None:
                self._start_threads()
            self._group = min(self._group * 2, LARGEST_GROUP)
            return scanned
        self._texts.pending = flight.pending
        taken = [block for each in (flight, *self._flights) for block in each.blocks]
        self._flights.clear()
        self._returned.extendleft(reversed(taken[1:]))
        self._group, self._single = 1, len(flight.blocks) - 1
        return taken[0]

    def _next(self) -> bytes | None:
        """Returns the next block, or None at the end of the file."""
        if not self._returned and self._inflated is not None:
            self._returned.extend(self._inflated.result())
            self._inflated = self._read_ahead() if self._returned else None
        return self._returned.popleft() if self._returned else next(self._blocks, None)

    def _start_threads(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # this import takes 8 ms

        self._pool = ThreadPoolExecutor(self._threads + 1, "tb_bottleneck reader")
        self._inflated = self._read_ahead()

    def _read_ahead(self) -> "Future[list[bytes]]":
        """Starts to read the next group of blocks in another thread. Only one thread at a time may read blocks."""
        assert self._pool is not None
        return self._pool.submit(lambda: list(islice(self._blocks, LARGEST_GROUP)))
