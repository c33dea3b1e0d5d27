"""What one iterator of a loader gave since the last backward pass: waited for, but not yet known to be trained on."""

from dataclasses import dataclass


@dataclass(slots=True)
class Fetched:
    """`began` is the moment in which the first batch was asked for; times are in nanoseconds. `samples` is NaN where a
    batch does not tell."""

    began: int
    wait: int = 0
    batches: int = 0
    samples: float = 0.0
