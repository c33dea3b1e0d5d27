"""Measure keys: the name of a measure's function is its key in verdicts and in the advice texts."""

import importlib
import inspect
import pkgutil
from itertools import combinations

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures import telemetry, trace

MIN_EDITS = 3


def keys_of(package) -> list[str]:
    """Returns the names of the package's public functions that return a measure."""
    keys = []
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
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
    keys = [*keys_of(trace), *keys_of(telemetry)]
    assert len(keys) > 120
    close = [(a, b) for a, b in combinations(sorted(keys), 2) if edit_distance(a, b) < MIN_EDITS]
    assert not close
