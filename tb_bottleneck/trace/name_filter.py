"""Which rows of a column of names pass a test: only names that occur there are asked."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints


def name_matches(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """For each row of the column, whose values are rows of `names`, whether that name passes."""
    occurs, passes = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    occurs[column] = True
    for name in np.flatnonzero(occurs).tolist():
        passes[name] = test(names[name])
    return np.asarray(passes[column], np.bool_)
