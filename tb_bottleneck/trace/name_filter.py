"""Selects rows by a test of their names. Each name is tested once, and only if it occurs."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints


def name_matches(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of the rows with a name that passes the test. The values of `column` are rows of `names`."""
    occurs, passes = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    occurs[column] = True
    for name in np.flatnonzero(occurs).tolist():
        passes[name] = test(names[name])
    return np.asarray(passes[column], np.bool_)
