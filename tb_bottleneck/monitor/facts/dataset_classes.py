"""The classes of the objects that make samples, by their functions.

The profiler names the frame of a method without its class: of a data set with several transforms, all are `__call__`.
Only the frames of the training process need it; the sampler in the workers writes the class itself.
"""

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from tb_bottleneck.monitor.workers.stack_sampler import below_import_path

METHODS = (
    "__call__",
    "forward",
    "transform",
    "_transform",
    "apply",
    "__getitem__",
    "__getitems__",
    "__iter__",
    "__next__",
)
MAX_OBJECTS, MAX_ENTRIES, MAX_DEPTH, MAX_NAME = 64, 64, 5, 120
"""Objects that are looked at, entries of a list or dictionary that is searched, and how deep. A list of all samples is
longer."""


def dataset_classes(dataset: Any) -> dict[str, str]:
    """Returns `Class.method` by the frame that the profiler writes, for a data set and the transforms in it.

    Attributes are read from the objects' dictionaries, so no property of the program runs.
    """
    found: dict[str, str] = {}
    for one in _objects(dataset):
        for kind in type(one).__mro__:
            for method in METHODS:
                function = vars(kind).get(method)
                if isinstance(function, FunctionType) and "torch/nn/modules/" not in function.__code__.co_filename:
                    code = function.__code__
                    frame = f"{below_import_path(code.co_filename)}({code.co_firstlineno}): {code.co_name}"
                    name = function.__qualname__.replace("<locals>.", "")
                    if len(frame) <= MAX_NAME >= len(name):
                        found.setdefault(frame, name)
    return found


def _objects(dataset: Any) -> Iterator[Any]:
    """Yields the data set and what it consists of, at most MAX_OBJECTS, each once."""
    level, seen = [dataset], set[int]()
    for _ in range(MAX_DEPTH):
        following: list[Any] = []
        for one in level:
            if id(one) in seen or len(seen) >= MAX_OBJECTS:
                continue
            seen.add(id(one))
            yield one
            for value in list(vars(one).values()):
                entries = _entries(value)
                following += [entry for entry in entries if isinstance(getattr(entry, "__dict__", None), dict)]
        level = following


def _entries(value: Any) -> list[Any]:
    if type(value) in (list, tuple) and len(value) <= MAX_ENTRIES:
        return list(value)
    if type(value) is dict and len(value) <= MAX_ENTRIES:
        return list(value.values())
    return [value]
