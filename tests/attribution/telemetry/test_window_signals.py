"""Steps that are long again and again: every k-th step with the same work, and what only looks like it."""

import numpy as np
import pytest

from tb_bottleneck.attribution.telemetry.window_signals import _recurring

STEPS = 60
NUMBER = np.arange(STEPS)
RNG = np.random.default_rng(3)
NOISE = RNG.normal(1.0, 0.05, STEPS)


def steps(is_long: np.ndarray, times: float = 2.8, work: float = 1.0) -> list[bool]:
    """Steps of 26 ms with 9 ms of timed work; long ones take `times` as long and do `work` times the work."""
    rest = np.where(is_long, 26e6 * times, 26e6) * NOISE
    busy = np.where(is_long, 9e6 * work, 9e6) * NOISE
    return _recurring(NUMBER, rest, busy)[0].tolist()


@pytest.mark.parametrize("every", [2, 3, 5])
def test_every_kth_step_is_interrupted(every):
    is_long = NUMBER % every == 0
    assert steps(is_long) == is_long.tolist()


@pytest.mark.parametrize(
    ("is_long", "options"),
    [
        (NUMBER % 2 == 0, {"work": 2.5}),  # two models that take turns, as in adversarial training
        (NUMBER % 2 == 0, {"times": 1.6}),
        (RNG.random(STEPS) < 0.5, {}),  # samples of different length
        (NUMBER >= STEPS // 2, {}),  # another phase of the training
        (NUMBER == 7, {}),
        (NUMBER % 2 == 0, {"work": 0.0}),  # nothing was timed
    ],
    ids=["more work", "a little longer", "by chance", "later steps", "once", "not timed"],
)
def test_other_long_steps_are_not(is_long, options):
    assert not any(steps(is_long, **options))
