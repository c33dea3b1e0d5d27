"""Groups rows by a key such as stream or thread; a trace may contain many thousands of either."""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.trace.table import Ints


def rows_by_key(keys: Ints) -> Iterator[Ints]:
    """Yields the rows of each distinct key, in their original order; keys ascending."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
