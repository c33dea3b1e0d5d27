"""Measures a loader with many settings (workers, pinning, prefetching), and selects the smallest that is fast enough.

arrivals   w w w w|m m m m|m m m m|m m m m        w  warm-up: workers start, queues fill
                  begin           |       end     m  measured, in whole rounds of one batch for each worker
"""

import gc
import math
import pickle
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tb_bottleneck.tools.loader_sweep.endless_loaders import LoaderSetting, SweepLoaders, one_line

PREFETCHES = (2, 4)
WITHIN = 0.05
"""Smallest relative difference between two rates that counts, even if each was stable.

Repeats of one setting with waiting samples differed by at most 1 % on two idle cores, and by 7 % with five other
programs on them.
"""
STANDARD_ERRORS = 2.0
MAX_SLACK = 0.2
"""A setting that delivers a fifth less is worse, even with large measurement errors."""
STILL_RISING = 1.3
# Each worker holds a copy of the dataset's objects, so the number of workers beyond the cores is limited.
MAX_WORKERS_PER_CORE, FEW_WORKERS, MANY_WORKERS = 4, 16, 64
WARM_UP_ROUNDS = 2
MIN_ROUNDS = 3

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The measured rate of one setting."""

    setting: LoaderSetting
    samples_per_s: float
    noise: float
    """Relative standard error of the rate."""
    first_batch_s: float
    """Time from the loader's start to its first batch, including the start of the workers."""
    batches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SweepFailure:
    """A setting that could not be measured."""

    setting: LoaderSetting
    because: str


def settings(cores: float, prefetches: Sequence[int], pinnings: Sequence[bool]) -> list[LoaderSetting]:
    """Returns the settings to try: workers 0, 1, 2, 4, 8, … up to the cores, and the number of cores."""
    whole_cores = max(1, math.floor(cores))
    workers = sorted({whole_cores, *(1 << power for power in range(whole_cores.bit_length()))})
    return all_combinations([0, *workers], prefetches, pinnings)


def all_combinations(
    workers: Sequence[int], prefetches: Sequence[int], pinnings: Sequence[bool]
) -> list[LoaderSetting]:
    """Returns every combination, cheapest first. Without workers, there is no prefetching."""
    return sorted({LoaderSetting(w, pinned, p if w else 0) for w in workers for p in prefetches for pinned in pinnings})


class Sweep:
    """Measures settings, each for about `seconds`."""

    def __init__(self, loaders: SweepLoaders, seconds: float, clock: Clock = time.perf_counter) -> None:
        self._loaders = loaders
        self._seconds = seconds
        self._clock = clock

    def measure(self, setting: LoaderSetting) -> SweepResult | SweepFailure:
        """Measures one setting. An exception of the dataset becomes a SweepFailure."""
        try:
            with warnings.catch_warnings():
                # Expected: more workers than cores, objects that cannot be pickled, a fork with torch's threads.
                warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\.utils\.data")
                warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)
                return self._measure(setting)
        except Exception as error:  # the user's code may raise anything
            reason = _reason(error)
        gc.collect()  # workers end with their loader's iterator, which the exception may have referenced
        return SweepFailure(setting, reason)

    def _measure(self, setting: LoaderSetting) -> SweepResult | SweepFailure:
        began = self._clock()
        arrivals = self._arrivals(setting)
        first = next(arrivals, None)
        if first is None:
            return SweepFailure(setting, "the dataset yields no batch")
        in_round = max(1, setting.workers)
        since, rounds, batches = first[0], [], 1
        warm_up_end = first[0] + 2 * self._seconds  # a limit for very slow loaders
        for since, _ in arrivals:
            batches += 1
            if batches >= WARM_UP_ROUNDS * in_round or since >= warm_up_end:
                break
        else:
            return SweepFailure(setting, f"the dataset has only {batches} batches, too few to measure")
        begin, samples, count = since, 0, 0
        for now, size in arrivals:
            samples, count = samples + size, count + 1
            if count % in_round == 0:
                rounds.append(now - since)
                since = now
                if now - begin >= self._seconds and len(rounds) >= MIN_ROUNDS:
                    break
                if now - begin >= 3 * self._seconds:
                    break
        if not rounds or since <= begin:
            return SweepFailure(setting, "the dataset ended before one round of batches was measured")
        noise = _standard_error(rounds)
        return SweepResult(setting, samples / (now - begin), noise, first[0] - began, count, now - begin)

    def _arrivals(self, setting: LoaderSetting) -> Iterator[tuple[float, int]]:
        """Yields (time, samples) of each batch; restarts a loader at its end, unless it is empty."""
        loader = self._loaders.loader(setting)
        while True:
            empty = True
            for batch in loader:
                empty = False
                self._loaders.take(batch, setting.pinned)
                yield self._clock(), self._loaders.samples_in(batch)
            if empty:
                return


def next_setting(results: Sequence[SweepResult | SweepFailure], cores: float) -> LoaderSetting | None:
    """Returns the setting to try next, with more workers than there are cores, or None if it would bring no gain.

    Workers that wait (for example for storage) use no core: if the last doubling of workers raised the rate by at least
    STILL_RISING, the next one may, too. Workers that compute bring no gain beyond the number of cores.
    """
    rates: dict[int, float] = {}
    for result in results:
        if isinstance(result, SweepResult) and result.setting.workers:
            rates[result.setting.workers] = max(rates.get(result.setting.workers, 0.0), result.samples_per_s)
    largest = max(rates, default=0)
    up_to_half = [workers for workers in rates if workers <= largest // 2]
    if not up_to_half or 2 * largest > max(FEW_WORKERS, min(MAX_WORKERS_PER_CORE * cores, MANY_WORKERS)):
        return None
    if rates[largest] < STILL_RISING * rates[max(up_to_half)]:
        return None
    cheapest = min(result.setting for result in results if result.setting.workers == largest)
    return LoaderSetting(2 * largest, cheapest.pinned, cheapest.prefetch)


def is_hopeless(results: Sequence[SweepResult | SweepFailure]) -> bool:
    """Returns True if all settings have failed, including one with workers. Others would fail too, and torch waits five
    seconds for each worker."""
    all_failed = all(isinstance(result, SweepFailure) for result in results)
    return all_failed and any(result.setting.workers for result in results)


def knee(results: Sequence[SweepResult]) -> SweepResult:
    """Returns the cheapest setting with a rate within noise of the best. `results` must not be empty.

    A setting without workers is selected only if no other was measured: with it the training waits for every batch,
    which a sweep without a training does not show.
    """
    candidates = [result for result in results if result.setting.workers] or results
    best = max(candidates, key=lambda result: result.samples_per_s)

    def is_as_good(result: SweepResult) -> bool:
        slack = min(max(WITHIN, STANDARD_ERRORS * math.hypot(result.noise, best.noise)), MAX_SLACK)
        return result.samples_per_s >= best.samples_per_s * (1 - slack)

    return min((result for result in candidates if is_as_good(result)), key=lambda result: result.setting)


def code(setting: LoaderSetting) -> str:
    """Returns the line of code for a setting."""
    arguments = [f"num_workers={setting.workers}"]
    if setting.pinned:
        arguments.append("pin_memory=True")
    if setting.workers:
        arguments += [f"prefetch_factor={setting.prefetch}", "persistent_workers=True"]
    return f"DataLoader(dataset, ..., {', '.join(arguments)})"


def _standard_error(rounds: Sequence[float]) -> float:
    """Returns the relative standard error of the mean round; 1 if there is only one round."""
    if len(rounds) < 2:
        return 1.0
    return statistics.stdev(rounds) / statistics.fmean(rounds) / math.sqrt(len(rounds))


def _reason(error: Exception) -> str:
    text = str(error)
    pickling = isinstance(error, pickle.PicklingError) or (
        isinstance(error, AttributeError | TypeError) and "pickle" in text
    )
    if pickling:
        return f"it cannot be sent to a worker, because it cannot be pickled: {one_line(error)}"
    return f"{one_line(error)}{' (in a worker)' if 'DataLoader worker' in text else ''}"
