"""How many samples a batch holds, told by its first tensor."""

from collections.abc import Mapping
from typing import Any

_DEPTH = 6


def batch_samples(batch: Any) -> float | None:
    """The length of the first tensor's (or array's) first axis; None where that cannot be told.

    A mapping is entered by its first value, a list or tuple by its first element, at most six levels deep. A batch that
    says so itself (`num_graphs`, `batch_sizes` of packed sequences) is believed.
    """
    for _ in range(_DEPTH):
        told = _says(batch)
        if told is not None:
            return told
        if isinstance(batch, Mapping):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, list | tuple) and batch:
            if isinstance(batch[0], str | bytes | int | float):
                return float(len(batch))
            batch = batch[0]
        else:
            return None
    return None


def _says(batch: Any) -> float | None:
    if type(batch) in (list, dict):  # the most common first: this runs in every step
        return None
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return float(shape[0]) if len(shape) else 1.0
    if hasattr(batch, "num_graphs"):
        return float(batch.num_graphs)
    if hasattr(batch, "batch_sizes") and hasattr(batch, "data"):
        return float(batch.batch_sizes[0])
    return None
