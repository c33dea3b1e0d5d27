"""Measures a loader under many settings, workers by pinning by prefetching, and names the smallest that is good enough.

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

from tb_bottleneck.tools.loader_sweep.endless_loaders import LoaderSetting, SweepLoaders
from tb_bottleneck.tools.loader_sweep.user_factory import one_line

PREFETCHES = (2, 4)
WITHIN = 0.05
"""Settings whose rates differ by less are taken for equal, however steady each looked.

Repeats of one setting over samples that wait lay within 1 % of each other on two idle cores, and within 7 % where five
other programs ran on them.
"""
STANDARD_ERRORS = 2.0
MOST_SLACK = 0.2
"""However little is known of a setting, one that delivers a fifth less is not as good."""
STILL_RISING = 1.3
# Each worker holds a copy of the dataset's objects: beyond the cores only so many are tried unasked.
MOST_PER_CORE, FEW_WORKERS, MANY_WORKERS = 4, 16, 64
WARM_ROUNDS = 2
FEWEST_ROUNDS = 3

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What one setting delivered."""

    setting: LoaderSetting
    samples_per_s: float
    noise: float
    """Standard error of the rate, as a part of it."""
    first_batch_s: float
    """From the loader's start to its first batch: the start of the workers is in it."""
    batches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SweepFailure:
    """A setting that could not be measured."""

    setting: LoaderSetting
    because: str


def settings(cores: float, prefetches: Sequence[int], pinnings: Sequence[bool]) -> list[LoaderSetting]:
    """The settings to try: workers 0, 1, 2, 4, 8, … up to the cores, and the cores themselves."""
    most = max(1, math.floor(cores))
    workers = sorted({most, *(1 << power for power in range(most.bit_length()))})
    return all_combinations([0, *workers], prefetches, pinnings)


def all_combinations(
    workers: Sequence[int], prefetches: Sequence[int], pinnings: Sequence[bool]
) -> list[LoaderSetting]:
    """Every combination, the cheapest first; without workers there is nothing to prefetch with."""
    every = {LoaderSetting(w, pinned, p if w else 0) for w in workers for p in prefetches for pinned in pinnings}
    return sorted(every)


class Sweep:
    """Measures one setting after the other, each for about `seconds`."""

    def __init__(self, feed: SweepLoaders, seconds: float, clock: Clock = time.perf_counter) -> None:
        self._feed = feed
        self._seconds = seconds
        self._clock = clock

    def measure(self, setting: LoaderSetting) -> SweepResult | SweepFailure:
        """Whatever the dataset raises becomes the setting's failure."""
        try:
            with warnings.catch_warnings():
                # Of more workers than cores, of what cannot be pickled, of a fork beside torch's threads: we know.
                warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\.utils\.data")
                warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)
                return self._measure(setting)
        except Exception as error:  # the border to the user's own code
            return SweepFailure(setting, _why(error))
        finally:
            gc.collect()  # workers end with their loader's iterator, which the exception may have held

    def _measure(self, setting: LoaderSetting) -> SweepResult | SweepFailure:
        began = self._clock()
        arrivals = self._arrivals(setting)
        first = next(arrivals, None)
        if first is None:
            return SweepFailure(setting, "the dataset gave no batch")
        in_round = max(1, setting.workers)
        since, rounds, batches = first[0], [], 1
        enough = first[0] + 2 * self._seconds  # a warm-up so slow would never end
        for since, _ in arrivals:
            batches += 1
            if batches >= WARM_ROUNDS * in_round or since >= enough:
                break
        else:
            return SweepFailure(setting, f"the dataset gave {batches} batches in all, too few to measure")
        begin, samples, count = since, 0, 0
        for now, size in arrivals:
            samples, count = samples + size, count + 1
            if count % in_round == 0:
                rounds.append(now - since)
                since = now
                if now - begin >= self._seconds and len(rounds) >= FEWEST_ROUNDS:
                    break
                if now - begin >= 3 * self._seconds:
                    break
        if not rounds or since <= begin:
            return SweepFailure(setting, "the dataset ended before one round of batches was measured")
        noise = _standard_error(rounds)
        return SweepResult(setting, samples / (now - begin), noise, first[0] - began, count, now - begin)

    def _arrivals(self, setting: LoaderSetting) -> Iterator[tuple[float, int]]:
        """(when, samples) of each batch; what ends is begun anew, unless it is empty."""
        loader = self._feed.loader(setting)
        while True:
            empty = True
            for batch in loader:
                empty = False
                self._feed.take(batch, setting.pinned)
                yield self._clock(), self._feed.samples_in(batch)
            if empty:
                return


def next_setting(found: Sequence[SweepResult | SweepFailure], cores: float) -> LoaderSetting | None:
    """The setting to try next, with more workers than there are cores; None where that can bring nothing.

    Workers that wait (for storage, say) take no core: where the last doubling of workers still raised the rate by more
    than STILL_RISING, the next one may too. Workers that compute stop that at the number of cores.
    """
    rates: dict[int, float] = {}
    for one in found:
        if isinstance(one, SweepResult) and one.setting.workers:
            rates[one.setting.workers] = max(rates.get(one.setting.workers, 0.0), one.samples_per_s)
    most = max(rates, default=0)
    sooner = [workers for workers in rates if workers <= most // 2]
    if not sooner or 2 * most > max(FEW_WORKERS, min(MOST_PER_CORE * cores, MANY_WORKERS)):
        return None
    if rates[most] < STILL_RISING * rates[max(sooner)]:
        return None
    cheapest = min(one.setting for one in found if one.setting.workers == most)
    return LoaderSetting(2 * most, cheapest.pinned, cheapest.prefetch)


def is_hopeless(found: Sequence[SweepResult | SweepFailure]) -> bool:
    """Whether all failed up to now, with workers too: the rest would only repeat it, each with five seconds in which
    torch waits for the worker."""
    return all(isinstance(one, SweepFailure) for one in found) and any(one.setting.workers for one in found)


def knee(measured: Sequence[SweepResult]) -> SweepResult:
    """The cheapest setting whose rate is within noise of the best. `measured` must not be empty.

    One without workers is only named where no other was measured: there the training waits for every batch, however
    fast they come, which a sweep without a training cannot see.
    """
    found = [one for one in measured if one.setting.workers] or measured
    best = max(found, key=lambda one: one.samples_per_s)

    def is_as_good(one: SweepResult) -> bool:
        slack = min(max(WITHIN, STANDARD_ERRORS * math.hypot(one.noise, best.noise)), MOST_SLACK)
        return one.samples_per_s >= best.samples_per_s * (1 - slack)

    return min((one for one in found if is_as_good(one)), key=lambda one: one.setting)


def code(setting: LoaderSetting) -> str:
    """The line to use."""
    words = [f"num_workers={setting.workers}"]
    if setting.pinned:
        words.append("pin_memory=True")
    if setting.workers:
        words += [f"prefetch_factor={setting.prefetch}", "persistent_workers=True"]
    return f"DataLoader(dataset, ..., {', '.join(words)})"


def _standard_error(rounds: Sequence[float]) -> float:
    """Of the mean round, as a part of it; 1 where one round tells nothing of the next."""
    if len(rounds) < 2:
        return 1.0
    return statistics.stdev(rounds) / statistics.fmean(rounds) / math.sqrt(len(rounds))


def _why(error: Exception) -> str:
    words = str(error)
    pickling = isinstance(error, pickle.PicklingError) or (
        isinstance(error, AttributeError | TypeError) and "pickle" in words
    )
    if pickling:
        return f"it cannot be sent to a worker, because it cannot be pickled: {one_line(error)}"
    return f"{one_line(error)}{' (in a worker)' if 'DataLoader worker' in words else ''}"
