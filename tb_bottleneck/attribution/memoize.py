"""Caches the results of functions whose only argument is a recording or a trace, for the lifetime of that object."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def memoized(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
    """Decorator that calls `function` once per argument object and caches the result while that object lives.

    Callers must not modify the result.
    """
    results: WeakKeyDictionary[Subject, Result] = WeakKeyDictionary()

    @wraps(function)
    def cached(subject: Subject) -> Result:
        if subject not in results:
            results[subject] = function(subject)
        return results[subject]

    return cached
