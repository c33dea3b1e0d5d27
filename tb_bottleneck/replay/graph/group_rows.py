"""Rows by what they have in common: streams, threads. A trace may hold many thousands of either."""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.trace.table import Ints


def rows_by_key(keys: Ints) -> Iterator[Ints]:
    """The rows of each distinct key, in their order; key by key in ascending order."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
