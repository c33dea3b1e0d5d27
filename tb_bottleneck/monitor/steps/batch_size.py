"""The number of samples in a batch, from its first tensor."""

from collections.abc import Mapping
from typing import Any

_DEPTH = 6


def batch_samples(batch: Any) -> float | None:
    """Returns the length of the first tensor's (or array's) first axis, or None if it is unknown.

    Of a mapping, the first value is used, of a list or tuple the first element, up to six levels deep. A batch that
    has its own size (`num_graphs`, `batch_sizes` of packed sequences) takes precedence.
    """
    for _ in range(_DEPTH):
        samples = _own_size(batch)
        if samples is not None:
            return samples
        if isinstance(batch, Mapping):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, list | tuple) and batch:
            if isinstance(batch[0], str | bytes | int | float):
                return float(len(batch))
            batch = batch[0]
        else:
            return None
    return None


def _own_size(batch: Any) -> float | None:
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
