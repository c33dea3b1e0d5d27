"""Caches the results of functions of a recording, for the lifetime of the recording."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from tb_bottleneck.attribution.recording import Recording

Result = TypeVar("Result")


def memoized(function: Callable[[Recording], Result]) -> Callable[[Recording], Result]:
    """Decorator: calls the function once per recording. Callers must not modify the result."""
    results: WeakKeyDictionary[Recording, Result] = WeakKeyDictionary()

    @wraps(function)
    def cached(recording: Recording) -> Result:
        if recording not in results:
            results[recording] = function(recording)
        return results[recording]

    return cached
