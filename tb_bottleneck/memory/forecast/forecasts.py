"""Predicted peaks of a training under other conditions, each with an interval."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.forecast.batch_scaling import BatchScaling, ScalingRules
from tb_bottleneck.memory.forecast.precision import checkpointed_peak, lives_of, mixed_precision_peaks, peak_of
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.memory.weights import optimizer_name, state_of

MARGIN = 0.05
"""Half the relative width of the interval of a forecast if recorded shapes prove which blocks grow. It covers the worst
errors in tests/measurements/MEMORY.md."""
CHECKPOINT_MARGIN = 0.1
"""Half the relative width that is added for checkpointing, because a recording does not show what a module keeps
besides its result."""
RESERVE = 0.05
"""Share of the device's memory that stays free for libraries and fragmentation."""
MAX_GROWTH = 1024
"""Largest factor by which a larger batch is advised. Before this factor, limits other than memory are reached."""
RANKS = 8
OTHER_OPTIMIZERS = {"AdamW": "SGD", "Adam": "SGD", "SGD": "AdamW"}


@dataclass(frozen=True)
class Forecast:
    """A predicted peak in bytes. The actual peak is expected between `low` and `high` (bytes).

    `change` is the key of the changed condition; `values` fill the placeholders of its title."""

    change: str
    values: dict[str, str]
    peak: float
    low: float
    high: float

    def fits(self, capacity: int | None) -> bool | None:
        """Returns True if `high` plus a reserve fits into `capacity` bytes, False if not; None if `capacity` is
        None."""
        return None if capacity is None else self.high <= capacity * (1 - RESERVE)


class Forecaster:
    """Predicts the peak under other conditions from one recording. Each method returns None if the recording does not
    allow the prediction. `samples` is the recorded number of samples per step; None if unknown."""

    def __init__(self, memory: TraceMemory, samples: int | None) -> None:
        self.memory = memory
        self.samples = samples
        self._sizes = memory.blocks.size
        self._now = peak_of(memory, lives_of(memory.blocks, self._sizes), memory.earlier)
        self._scaling: BatchScaling | None = None

    def batch(self, samples: int) -> Forecast | None:
        """Returns the forecast of the peak for `samples` samples per step; None if `samples` is below 1, or if the
        recorded number of samples is unknown."""
        if self.samples is None or samples < 1:
            return None
        factor = samples / self.samples
        told = self._told()
        least, most = told.grows & told.sure, told.grows | ~told.sure
        bounds = (least, most) if factor > 1 else (most, least)
        blocks, earlier = self.memory.blocks, self.memory.earlier
        low, peak, high = (
            peak_of(self.memory, lives_of(blocks, self._sizes * np.where(grows, factor, 1.0)), earlier)
            for grows in (bounds[0], told.grows, bounds[1])
        )
        return self._forecast("batch", {"samples": f"{samples:,}"}, low, peak, high)

    def unchanged(self) -> Forecast:
        """Returns the recorded peak as a forecast, for the comparison with the capacity of another device."""
        return self._forecast("device", {}, self._now, self._now, self._now)

    def largest_batch(self) -> Forecast | None:
        """Returns the forecast for the largest batch that fits into the device's memory. The batch is the recorded
        batch times a power of two. None if twice the batch does not fit, or if this is unknown."""
        factor = self.largest_factor(self.memory.account.capacity)
        return self.batch(self.samples * factor) if self.samples is not None and factor > 1 else None

    def largest_factor(self, capacity: int | None) -> int:
        """Returns the largest power of two, up to MAX_GROWTH, by which the batch can be multiplied so that it still
        fits into `capacity` bytes; 1 if twice the batch does not fit, or if this is unknown."""
        factor = 1
        while capacity is not None and self.samples is not None and 2 * factor <= MAX_GROWTH:
            forecast = self.batch(self.samples * 2 * factor)
            if forecast is None or not forecast.fits(capacity):
                break
            factor *= 2
        return factor

    def checkpointing(self) -> Forecast | None:
        """Returns the forecast of the peak if all modules of one repeated class are checkpointed. The class is the one
        that lowers the peak most. None if no class lowers the peak."""
        found = checkpointed_peak(self.memory)
        if found is None:
            return None
        bounds = found.peak * (1 - CHECKPOINT_MARGIN), found.peak, min(found.peak * (1 + CHECKPOINT_MARGIN), self._now)
        return self._forecast("checkpointing", {"module": found.module}, *bounds)

    def precision(self) -> Forecast | None:
        """Returns the forecast of the peak with automatic mixed precision; None if the run does not train, already uses
        16-bit types, or shows no fp32 inputs."""
        peaks = mixed_precision_peaks(self.memory)
        return None if peaks is None else self._forecast("precision", {}, *peaks)

    def optimizer(self, name: str) -> Forecast | None:
        """Returns the forecast of the peak with the optimizer class `name` instead of the recorded class. None if the
        size of the state is unknown for one of the two classes, or if no gradients were recorded."""
        state, now, parameters = state_of(name), self.memory.state_bytes, self.memory.gradient_bytes
        if state is None or now is None or not parameters:
            return None
        peak = self._now + state * parameters - now
        return self._forecast("optimizer", {"name": name}, peak, peak, peak)

    def sharding(self, ranks: int) -> Forecast | None:
        """Returns the forecast of the peak if optimizer state, gradients and parameters are sharded over `ranks`
        processes (ZeRO stage 3); None for fewer than two ranks, or if no gradients were recorded."""
        parameters = self.memory.gradient_bytes
        if ranks < 2 or not parameters:
            return None
        blocks, category = self.memory.blocks, self.memory.category
        kinds = (Category.PARAMETERS, Category.GRADIENTS, Category.OPTIMIZER)
        sharded = np.isin(category, [INDEX[kind] for kind in kinds])
        gradients = blocks.size[category == INDEX[Category.GRADIENTS]]
        gathered = 2 * int(gradients.max(initial=0))
        account = self.memory.account
        before = sum(account.bytes_of[kind] for kind in kinds)
        before -= self.memory.bytes_at_peak(sharded)  # parameters and state from before the recording
        sizes = blocks.size * np.where(sharded, 1 / ranks, 1.0)
        peak = peak_of(self.memory, lives_of(blocks, sizes), self.memory.earlier) - before * (1 - 1 / ranks) + gathered
        return self._forecast("sharding", {"ranks": str(ranks)}, peak, peak, peak + parameters)

    def all(self) -> Iterator[Forecast]:
        """Yields the forecasts that a report shows, without those that the recording does not allow: another batch
        size, checkpointing, mixed precision, another optimizer, and sharding."""
        name = optimizer_name(self.memory.trace)
        batch = self.largest_batch() or (self.batch(2 * self.samples) if self.samples is not None else None)
        other = OTHER_OPTIMIZERS.get(name or "")
        found = (batch, self.checkpointing(), self.precision(), self.optimizer(other) if other else None)
        yield from (it for it in (*found, self.sharding(RANKS)) if it is not None)

    def _told(self) -> BatchScaling:
        if self._scaling is None:
            assert self.samples is not None
            self._scaling = ScalingRules(self.memory, self.samples).scaling()
        return self._scaling

    def _forecast(self, change: str, values: dict[str, str], low: float, peak: float, high: float) -> Forecast:
        """Returns the forecast with the key `change` for the peaks `low`, `peak` and `high`, in bytes of tensors.

        Adds the estimated bytes of the account to all three. Multiplies `peak` and `high` by the ratio of reserved
        bytes to bytes in tensors, and widens `low` and `high` by MARGIN. `values` fill the placeholders of the
        forecast's title."""
        account = self.memory.account
        overhead = 1.0 if self.memory.on_cpu else account.overhead
        shift = account.estimated
        low, high = min(low, peak) * (1 - MARGIN), max(high, peak) * (1 + MARGIN)
        return Forecast(
            change, values, max(peak * overhead + shift, 0.0), max(low + shift, 0.0), max(high * overhead + shift, 0.0)
        )
