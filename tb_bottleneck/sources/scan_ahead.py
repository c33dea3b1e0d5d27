"""Scans groups of blocks with the native scanner, several of them at the same time.

Blocks are cut into texts before the texts of earlier blocks are read. Where the scanner refuses a text, all that was
cut from there on is taken back, and the pure reader reads on from the same state. So both readers return the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tb_bottleneck.sources.scanned import Categories, Scan, Scanned, with_decoded

if TYPE_CHECKING:
    from tb_bottleneck.native.scanner import Result

LARGEST_GROUP = 8
"""Blocks that are scanned by one call: the keys of 2 MB are interned at once."""


class Texts(Protocol):
    """The state of the pure reader between two blocks."""

    exact: bool
    pending: bytes
    ended: bool

    def cut(self, block: bytes) -> bytes | None:
        """Returns the list of events that ends in this block; None, without any effect, if none does."""


class _Flight(NamedTuple):
    """A group that is being scanned."""

    blocks: list[bytes]
    pending: bytes  # before the group
    result: Callable[[], "Result | int"]


class ScanAhead:
    """One pass over the blocks of a file."""

    def __init__(self, texts: Texts, blocks: Iterator[bytes], scan: Scan, categories: Callable[[], Categories]) -> None:
        self._texts = texts
        self._blocks = blocks
        self._scan = scan
        self._categories = categories
        self._returned: deque[bytes] = deque()
        self._flights: deque[_Flight] = deque()
        self._group = 1
        self._single = 0  # blocks that are to be scanned one by one, after a refusal

    def __iter__(self) -> Iterator[Scanned | bytes]:
        """Yields the scanned events, and the blocks that are left to the pure reader, in order."""
        while True:
            self._fill()
            if self._flights:
                yield self._first()
            elif (block := self._next()) is not None:
                yield block
            else:
                return

    def _fill(self) -> None:
        while len(self._flights) < 1 and not self._texts.ended:
            if (flight := self._flight()) is None:
                return
            self._flights.append(flight)

    def _next(self) -> bytes | None:
        return self._returned.popleft() if self._returned else next(self._blocks, None)

    def _flight(self) -> _Flight | None:
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
        return _Flight(blocks, pending, partial(self._scan, tuple(texts), self._categories(), self._texts.exact))

    def _first(self) -> Scanned | bytes:
        flight = self._flights.popleft()
        result = flight.result()
        scanned = None if isinstance(result, int) else with_decoded(result, self._texts.exact)
        if scanned is not None:
            self._group = min(self._group * 2, LARGEST_GROUP)
            return scanned
        self._texts.pending = flight.pending
        taken = [block for each in (flight, *self._flights) for block in each.blocks]
        self._flights.clear()
        self._returned.extendleft(reversed(taken[1:]))
        self._group, self._single = 1, len(flight.blocks) - 1
        return taken[0]
