"""The gain of a change: known when it is clear, and seldom found where there is none."""

import math
import random

import pytest

from tb_bottleneck.trial.statistics import BETWEEN_TRIALS, MIN_PAIRS, loss_agreement, measured_gain

MS = 1e6


def drawn(seed: int, mean: float, spread: float, count: int) -> list[float]:
    random_ = random.Random(seed)
    return [mean * MS * math.exp(random_.gauss(0, spread)) for _ in range(count)]


def until_known(seed: int, gain: float, spread: float, most: int = 20) -> str:
    """Returns the verdict of a trial that ends as soon as it is known."""
    before, after = drawn(2 * seed, 20, spread, most), drawn(2 * seed + 1, 20 / gain, spread, most)
    for pairs in range(1, most + 1):
        found = measured_gain(before[:pairs], after[:pairs])
        if found.is_known:
            return found.verdict
    return "unknown"


def test_a_clear_gain_is_known_after_the_fewest_pairs() -> None:
    found = measured_gain([20 * MS, 20.1 * MS, 19.9 * MS], [10 * MS, 10.1 * MS, 10 * MS])
    assert (found.verdict, found.pairs) == ("faster", MIN_PAIRS)
    assert found.low < 2.0 < found.high
    assert measured_gain([10 * MS] * 3, [10.5 * MS, 10.6 * MS, 10.5 * MS]).verdict == "slower"


def test_the_interval_is_that_of_another_trial() -> None:
    """Three pairs that agree by chance do not know how the machine will be in the next minutes."""
    found = measured_gain([20 * MS] * 3, [10 * MS] * 3)
    assert math.log(found.high / found.low) == pytest.approx(2 * 1.96 * 0.02)


def test_fewer_pairs_say_nothing() -> None:
    assert not measured_gain([20 * MS, 20 * MS], [1 * MS, 1 * MS]).is_known


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.05])
def test_equal_programs_are_seldom_called_different(spread: float) -> None:
    verdicts = [until_known(seed, 1.0, spread) for seed in range(400)]
    wrong = sum(verdict in ("faster", "slower") for verdict in verdicts)
    assert wrong <= 0.05 * len(verdicts)


def test_quiet_equal_programs_are_called_equal() -> None:
    verdicts = [until_known(seed, 1.0, 0.01) for seed in range(100)]
    assert verdicts.count("no difference") >= 95


def test_equal_programs_on_a_usual_machine_are_called_equal_within_twenty_pairs() -> None:
    """Blocks that differ by 2 %, as those of trainings on two cores do."""
    verdicts = [until_known(seed, 1.0, 0.02) for seed in range(400)]
    assert verdicts.count("no difference") >= 0.95 * len(verdicts)


@pytest.mark.parametrize(("gain", "most"), [(1.05, 0.02), (1.08, 0.0)])
def test_a_gain_is_seldom_called_no_difference(gain: float, most: float) -> None:
    verdicts = [until_known(seed, gain, 0.02) for seed in range(400)]
    assert verdicts.count("no difference") <= most * len(verdicts)


def test_a_real_gain_is_found() -> None:
    assert all(until_known(seed, 1.3, 0.03) == "faster" for seed in range(100))


def test_the_interval_contains_the_truth_as_often_as_it_says() -> None:
    """The machine is another one in each trial, by BETWEEN_TRIALS."""
    inside = 0
    for seed in range(1000):
        of_trial = 16 * math.exp(random.Random(-seed - 1).gauss(0, BETWEEN_TRIALS))
        found = measured_gain(drawn(2 * seed, 20, 0.03, 6), drawn(2 * seed + 1, of_trial, 0.03, 6))
        inside += found.low <= 1.25 <= found.high
    assert 0.92 <= inside / 1000 <= 0.98


def test_losses_agree_within_rounding_and_within_the_noise_of_repeats() -> None:
    losses = [2.0 - 0.01 * step for step in range(30)]
    rounded = [value * (1 + 1e-6) for value in losses]
    other = [value * 1.05 for value in losses]
    noisy = [value * 1.04 for value in losses]
    assert loss_agreement([losses], [rounded]).agrees  # type: ignore[union-attr]
    assert not loss_agreement([losses, losses], [other]).agrees  # type: ignore[union-attr]
    assert loss_agreement([losses, noisy], [other]).agrees  # type: ignore[union-attr]
    far = [value * 1.2 for value in losses]  # more than three times what the repeats differ by
    assert not loss_agreement([losses, noisy], [far]).agrees  # type: ignore[union-attr]


@pytest.mark.parametrize("after", [[], [[]], [[math.nan] * 30], [[1.0]]])
def test_losses_that_are_not_known_cannot_be_compared(after: list[list[float]]) -> None:
    assert loss_agreement([[1.0] * 30], after) is None
