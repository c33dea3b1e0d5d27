"""A sweep finds the best setting for datasets that wait and that compute, and reports failures."""

import itertools
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from monitor.datasets import SAMPLE_S, Breaks, Computes, Counts, Empty, Stream, Waits, cannot_be_sent  # noqa: E402

from tb_bottleneck.monitor.facts.cpu import usable_cores  # noqa: E402
from tb_bottleneck.tools.loader_sweep.endless_loaders import LoaderSetting, SweepLoaders  # noqa: E402
from tb_bottleneck.tools.loader_sweep.sweep import (  # noqa: E402
    Sweep,
    SweepFailure,
    SweepResult,
    all_combinations,
    code,
    is_hopeless,
    knee,
    next_setting,
    settings,
)

ALONE, ONE, TWO = LoaderSetting(0, False, 0), LoaderSetting(1, False, 2), LoaderSetting(2, False, 2)


def measured(workers: int, rate: float, noise: float = 0.01, pinned: bool = False, prefetch: int = 2) -> SweepResult:
    return SweepResult(LoaderSetting(workers, pinned, prefetch if workers else 0), rate, noise, 0.1, 100, 3.0)


class Drawn:
    """Loaders with batches at drawn times, which advance a clock.

    One letter is a tenth of a second, `#` a batch of one sample.
    """

    def __init__(self, drawing: str) -> None:
        self.drawing = drawing
        self.now = 0.0

    def loader(self, setting: LoaderSetting) -> Iterator[int]:
        for letter in self.drawing:
            self.now += 0.1
            if letter == "#":
                yield 1
        self.drawing = ""

    def take(self, batch: object, pinned: bool) -> None:
        self.now += 0.0

    def samples_in(self, batch: object) -> int:
        return 1

    def under(self, setting: LoaderSetting, seconds: float = 1.0) -> SweepResult | SweepFailure:
        return Sweep(self, seconds, lambda: self.now).measure(setting)  # type: ignore[arg-type]


def test_the_warm_up_is_not_measured() -> None:
    found = Drawn("........#####.#.#.#.#.#.#.#.#.#").under(ONE)
    assert isinstance(found, SweepResult)
    assert found.first_batch_s == pytest.approx(0.9)
    drawn = Drawn(".....#.#" + "#" * 30).under(ONE)
    assert isinstance(drawn, SweepResult)
    assert drawn.samples_per_s == pytest.approx(10)
    assert drawn.noise == pytest.approx(0, abs=1e-6)


def test_workers_that_take_long_to_start_still_get_their_warm_up() -> None:
    """Starting a worker takes seconds. Batches queued during this time must not count as its rate."""
    found = Drawn("." * 50 + "####" + "...##" * 12).under(TWO)
    assert isinstance(found, SweepResult)
    assert found.samples_per_s == pytest.approx(4)


def test_workers_that_deliver_together_are_measured_in_whole_rounds() -> None:
    """
    Two workers, each half a second for a batch: four samples a second, even if the time ends within a burst.
    """
    for seconds in (1.0, 1.1, 1.3):
        found = Drawn("...##" * 12).under(TWO, seconds)
        assert isinstance(found, SweepResult)
        assert found.samples_per_s == pytest.approx(4)


def test_a_dataset_that_ends_too_soon_is_no_figure() -> None:
    assert isinstance(Drawn("#").under(ONE), SweepFailure)
    assert isinstance(Drawn("##").under(ONE), SweepFailure)
    assert Drawn("").under(ONE) == SweepFailure(ONE, "the dataset yields no batch")


def test_settings_up_to_the_cores_and_the_cores_themselves() -> None:
    tried = settings(6.5, (2,), (False,))
    assert [one.workers for one in tried] == [0, 1, 2, 4, 6]
    assert [one.workers for one in settings(0.5, (2,), (False,))] == [0, 1]


def test_every_combination_the_cheapest_first_and_nothing_to_prefetch_without_workers() -> None:
    assert all_combinations([1, 0], (4, 2), (True, False)) == [
        LoaderSetting(0, False, 0),
        LoaderSetting(0, True, 0),
        LoaderSetting(1, False, 2),
        LoaderSetting(1, False, 4),
        LoaderSetting(1, True, 2),
        LoaderSetting(1, True, 4),
    ]


def test_the_knee_is_the_cheapest_within_noise() -> None:
    found = [measured(1, 100), measured(2, 190), measured(4, 300), measured(8, 310), measured(16, 290)]
    assert knee(found).setting.workers == 4


def test_noisy_settings_need_a_larger_difference() -> None:
    assert knee([measured(2, 270), measured(4, 300)]).setting.workers == 4
    assert knee([measured(2, 270, noise=0.05), measured(4, 300, noise=0.04)]).setting.workers == 2
    assert knee([measured(2, 100, noise=1.0), measured(4, 300, noise=1.0)]).setting.workers == 4


def test_no_workers_is_only_named_where_nothing_else_works() -> None:
    assert knee([measured(0, 500), measured(1, 100)]).setting.workers == 1
    assert knee([measured(0, 500)]).setting.workers == 0


def test_workers_that_wait_may_be_more_than_cores() -> None:
    rising = [measured(1, 100), measured(2, 200)]
    assert next_setting(rising, cores=2) == LoaderSetting(4, False, 2)
    assert next_setting([*rising, measured(4, 390)], cores=2) == LoaderSetting(8, False, 2)
    assert next_setting([*rising, measured(4, 220)], cores=2) is None
    assert next_setting([*rising, SweepFailure(LoaderSetting(4, False, 2), "killed")], cores=2) == LoaderSetting(
        4, False, 2
    )


def test_the_number_of_workers_that_are_tried_is_limited() -> None:
    assert next_setting([measured(8, 100), measured(16, 200)], cores=2) is None
    assert next_setting([measured(16, 100), measured(32, 200)], cores=16) == LoaderSetting(64, False, 2)
    assert next_setting([measured(32, 100), measured(64, 200)], cores=64) is None
    assert next_setting([measured(0, 100)], cores=4) is None


def test_where_all_fails_with_workers_too_the_rest_is_not_tried() -> None:
    broken = SweepFailure(ALONE, "ValueError: broken")
    assert not is_hopeless([broken]), "it may only fail outside of a worker"
    assert is_hopeless([broken, SweepFailure(ONE, "ValueError: broken")])
    assert not is_hopeless([measured(0, 100), SweepFailure(ONE, "cannot be pickled")])


def test_the_line_to_use() -> None:
    assert code(ALONE) == "DataLoader(dataset, ..., num_workers=0)"
    assert code(LoaderSetting(4, True, 2)) == (
        "DataLoader(dataset, ..., num_workers=4, pin_memory=True, prefetch_factor=2, persistent_workers=True)"
    )


def test_without_workers_a_dataset_that_waits_gives_one_sample_a_wait() -> None:
    found = Sweep(SweepLoaders({"dataset": Waits(), "batch_size": 4}, torch), 0.2).measure(ALONE)
    assert isinstance(found, SweepResult)
    assert 0.1 / SAMPLE_S < found.samples_per_s <= 1.02 / SAMPLE_S


def rates(given: object, tried: list[LoaderSetting], seconds: float) -> list[float]:
    results = [Sweep(SweepLoaders(given, torch), seconds).measure(setting) for setting in tried]
    assert all(isinstance(one, SweepResult) for one in results), results
    return [one.samples_per_s for one in results if isinstance(one, SweepResult)]


@pytest.mark.slow
def test_four_workers_that_wait_give_more_samples_than_one_can_however_few_the_cores() -> None:
    """Four times the rate on an idle machine, and a clear gain on a busy one."""
    (four,) = rates({"dataset": Waits(), "batch_size": 4}, [LoaderSetting(4, False, 2)], 0.8)
    assert 1.5 / SAMPLE_S < four < 5 / SAMPLE_S


@pytest.mark.slow
def test_workers_that_compute_are_no_faster_than_their_cores() -> None:
    """A sample takes CPU time, which limits the rate per core."""
    _, eight = rates({"dataset": Computes(), "batch_size": 2}, [ONE, LoaderSetting(8, False, 2)], 0.8)
    assert eight <= 1.15 * max(1, usable_cores()) / SAMPLE_S


def test_an_iterable_is_restarted() -> None:
    ticks = itertools.count()  # a clock that does not depend on the machine's load
    loaders = SweepLoaders({"dataset": Stream(), "batch_size": 2}, torch)
    found = Sweep(loaders, 0.2, lambda: next(ticks) / 100).measure(ONE)
    assert isinstance(found, SweepResult)
    assert found.batches > 10


@pytest.mark.parametrize("setting", [ALONE, ONE])
def test_a_sample_that_raises_is_reported_in_one_line(setting: LoaderSetting) -> None:
    found = Sweep(SweepLoaders(Breaks(), torch), 0.1).measure(setting)
    assert isinstance(found, SweepFailure)
    assert found.because == f"ValueError: sample 0 is broken{' (in a worker)' if setting.workers else ''}"


def test_a_dataset_that_cannot_be_pickled_is_reported_and_works_without_workers() -> None:
    feed = SweepLoaders(cannot_be_sent(), torch)
    found = Sweep(feed, 0.1).measure(ONE)
    assert isinstance(found, SweepFailure)
    assert "pickle" in found.because
    assert isinstance(Sweep(feed, 0.05).measure(ALONE), SweepResult)


def test_an_empty_dataset_does_not_go_on_for_ever() -> None:
    assert Sweep(SweepLoaders({"dataset": Empty()}, torch), 0.1).measure(ALONE) == SweepFailure(
        ALONE, "the dataset yields no batch"
    )


def test_a_short_dataset_is_read_over_and_over() -> None:
    found = Sweep(SweepLoaders({"dataset": Counts(), "batch_size": 7}, torch), 0.05).measure(ALONE)
    assert isinstance(found, SweepResult)
    assert found.batches > 20
