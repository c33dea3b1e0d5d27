"""Remembers what a function found in a recording for as long as the recording lives, and no longer."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from tb_bottleneck.attribution.recording import Recording

Found = TypeVar("Found")


def memoized(function: Callable[[Recording], Found]) -> Callable[[Recording], Found]:
    """The function, asked once per recording. What it returns must not be changed."""
    found: WeakKeyDictionary[Recording, Found] = WeakKeyDictionary()

    @wraps(function)
    def ask(recording: Recording) -> Found:
        if recording not in found:
            found[recording] = function(recording)
        return found[recording]

    return ask
