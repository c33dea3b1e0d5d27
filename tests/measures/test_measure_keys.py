"""Measure keys: the name of a measure's function is its key in verdicts and in the advice texts."""

import inspect
from itertools import combinations

from helpers.modules import modules_of

from tb_bottleneck import bottlenecks, measures
from tb_bottleneck.base.measure import Measure, Missing

MIN_EDITS = 3


def all_keys() -> list[str]:
    """Returns the names of all public functions that return a measure."""
    keys = []
    for module in modules_of(measures, bottlenecks):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and inspect.signature(function).return_annotation == Measure | Missing:
                keys.append(name)
    return keys


def edit_distance(a: str, b: str) -> int:
    """Returns the Levenshtein distance."""
    above = list(range(len(b) + 1))
    for row, letter in enumerate(a, 1):
        current = [row]
        for column, other in enumerate(b, 1):
            current.append(min(above[column] + 1, current[-1] + 1, above[column - 1] + (letter != other)))
        above = current
    return above[-1]


def test_the_distance():
    assert edit_distance("collections", "collectives") == 2
    assert edit_distance("cores", "workers") == 3


def test_no_two_keys_can_be_confused():
    keys = all_keys()
    assert len(keys) > 120
    close = [(a, b) for a, b in combinations(sorted(keys), 2) if edit_distance(a, b) < MIN_EDITS]
    assert not close
