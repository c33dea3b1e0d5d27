"""Selects rows by a test of their names. Each name is tested once, and only if it occurs."""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints


def passing_names(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of the names that occur in `column`, as rows of `names`, and pass the test."""
    occurs, passes = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    occurs[column] = True
    for name in np.flatnonzero(occurs).tolist():
        passes[name] = test(names[name])
    return passes


def name_matches(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of the rows with a name that passes the test. The values of `column` are rows of `names`."""
    return np.asarray(passing_names(names, column, test)[column], np.bool_)
