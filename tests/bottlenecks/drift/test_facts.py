"""Steps that become longer over the run are named with what grows, and steady ones are not."""

import numpy as np
import pytest
from helpers.telemetry_rows import packet, recording_of

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.drift.facts import (
    drift_of,
    drift_shape,
    growing_parts,
    growth_cost,
    growth_within_epochs,
    largest_growth,
    samples_over_run,
)
from tb_bottleneck.bottlenecks.telemetry_judge import conclusion_of, judge_all
from tb_bottleneck.measures.measure_set import Measures

STEPS = 600
NUMBERS = np.arange(STEPS)
RISING = 20 + 20 * NUMBERS / STEPS
PHASES = {"forward": np.full(STEPS, 6.0), "backward": np.full(STEPS, 8.0), "optimizer": np.full(STEPS, 2.0)}


def noise(seed, scale):
    return 1 + scale * np.random.default_rng(seed).standard_normal(STEPS)


@pytest.mark.parametrize("scale", [0.0, 0.05, 0.3])
def test_a_gradual_growth_is_named(scale):
    recording = recording_of(packet(RISING * np.abs(noise(1, scale)), **PHASES))
    drift = drift_of(recording)
    assert drift is not None
    assert drift.factor == pytest.approx((20 + 20 * 5 / 6) / (20 + 20 / 6), rel=0.1)
    assert drift_shape(recording).text == "gradually"


def test_the_cost_is_the_time_beyond_the_start():
    """Steps of 10 ms, then of 30 ms for half of the time in steps: 20 of 40 ms on average are beyond 10 ms."""
    recording = recording_of(packet(np.where(NUMBERS < STEPS / 2, 10.0, 30.0)))
    assert growth_cost(recording).value == pytest.approx(0.5, abs=0.01)
    assert drift_shape(recording).text.startswith("at once, at about step 30")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", [0.02, 0.2, 0.5])
def test_noise_is_no_growth(seed, scale):
    """Half of the scale as slow waves, half as noise of each step."""
    waves = 1 + scale / 2 * np.sin(NUMBERS / 37 + seed)
    recording = recording_of(packet(20 * waves * np.abs(noise(seed, scale / 2))))
    assert drift_of(recording) is None


def test_the_last_third_is_one_of_the_time():
    """A tenth of the steps takes half of the time: nobody would say that the last third of the run was not slower."""
    recording = recording_of(packet(np.where(NUMBERS < 0.9 * STEPS, 2.0, 18.0)))
    drift = drift_of(recording)
    assert drift is not None
    assert drift.factor == pytest.approx(9, rel=0.01)
    assert drift.beyond == pytest.approx(1.6 / 3.6, abs=0.01)


def test_steady_growth_is_measured_from_its_start():
    """From 1 ms to 41 ms: at best as fast as its first steps, 21 / 1, and not 21 / (mean of the first third)."""
    drift = drift_of(recording_of(packet(1 + 40 * NUMBERS / STEPS)))
    assert drift is not None
    assert 1 / (1 - drift.beyond) > 6


def test_a_machine_that_becomes_slower_is_no_growth_of_the_program():
    """Other programs or lower clocks slow all parts of a step; what grows in the program slows one of them."""
    slower = 1 + 0.6 * NUMBERS / STEPS
    both = {name: column * slower for name, column in PHASES.items()}
    assert drift_of(recording_of(packet(20 * slower, **both))) is None
    both["backward"] = both["backward"] * (1 + 2 * NUMBERS / STEPS)
    assert drift_of(recording_of(packet(20 * slower + both["backward"], **both))) is not None


def test_a_small_optimizer_shows_that_the_machine_became_slower():
    """A healthy training on a shared machine: all phases at once took 1.4 times as long, a sleep of 3 ms did not."""
    slower = np.where(NUMBERS < STEPS / 2, 1.0, 1.4)
    phases = {"forward": 7.0 * slower, "backward": 10.0 * slower, "optimizer": 0.4 * slower}
    wall = sum(phases.values()) + 3.0
    assert drift_of(recording_of(packet(wall, **phases))) is None
    longer_model = phases | {"optimizer": np.full(STEPS, 0.4)}
    assert drift_of(recording_of(packet(wall, **longer_model))) is not None
    del longer_model["optimizer"]
    assert drift_of(recording_of(packet(wall, **longer_model))) is not None


def test_faster_steps_and_short_runs_are_no_growth():
    assert drift_of(recording_of(packet(RISING[::-1]))) is None
    assert drift_of(recording_of(packet(RISING[:50:1] * np.arange(1, 51)))) is None


def test_steps_that_grow_with_their_batch_are_no_growth():
    assert drift_of(recording_of(packet(RISING, samples=np.round(RISING)))) is None
    steady = recording_of(packet(RISING, samples=np.full(STEPS, 32.0)))
    assert drift_of(steady) is not None
    assert samples_over_run(steady).text == "32 to 32"


@pytest.mark.parametrize("kind", ["checkpoint", "evaluation", "epoch_start"])
def test_interruptions_that_grow_are_not_the_steps(kind):
    longer = np.where(NUMBERS % 5 == 0, RISING * 4, 0.0)
    assert drift_of(recording_of(packet(20 + longer, **{kind: longer}))) is None


@pytest.mark.parametrize(
    ("part", "regime"),
    [
        ("loader_wait", Regime.INPUT),
        ("transfer", Regime.TRANSFER),
        ("forward", Regime.COMPUTE),
        ("outside", Regime.HOST),
    ],
)
def test_the_part_that_grows_gives_the_regime(part, regime):
    grown = 30 * NUMBERS / STEPS
    columns = {"loader_wait": np.full(STEPS, 0.5), "transfer": np.full(STEPS, 0.5), **PHASES}
    if part != "outside":
        columns[part] = columns[part] + grown
    recording = recording_of(packet(20 + grown, **columns))
    assert largest_growth(recording).text == part
    assert " to " in growing_parts(recording).text
    verdicts = judge_all(Measures(recording))
    (judged,) = (verdict for verdict in verdicts if verdict.judgement.causes[:1] and verdict.regime == regime)
    assert judged.judgement.causes[0].name == "growing_steps"
    assert conclusion_of(verdicts).regime == regime


def test_longer_work_of_a_device_may_be_intended():
    """Longer sequences later in a run are a choice: the growth is told, and not counted as recoverable."""
    grown = 30 * NUMBERS / STEPS
    columns = {**PHASES, "device_busy": 18 + grown, "loader_wait": np.full(STEPS, 0.1)}
    columns["backward"] = columns["backward"] + grown
    verdicts = judge_all(Measures(recording_of(packet(20 + grown, **columns), {"device_kind": "cuda"})))
    (cause,) = (cause for verdict in verdicts for cause in verdict.judgement.causes if cause.name == "growing_steps")
    assert not cause.certain


def test_steps_that_lengthen_within_each_epoch_are_no_growth_of_the_run():
    of_epoch = NUMBERS % 100
    recording = recording_of(packet(10 + of_epoch / 5, epoch_start=np.where(of_epoch == 0, 1.0, 0.0)))
    assert drift_of(recording) is None
    assert growth_within_epochs(recording).value == pytest.approx((10 + 83 / 5) / (10 + 17 / 5), rel=0.1)
    steady = recording_of(packet(20 * noise(3, 0.1), epoch_start=np.where(of_epoch == 0, 1.0, 0.0)))
    assert isinstance(growth_within_epochs(steady), Missing)


def test_nothing_is_said_without_steps_of_a_kind():
    recording = recording_of(packet(RISING))
    assert isinstance(growing_parts(recording), Missing)
    assert isinstance(largest_growth(recording), Missing)
    assert isinstance(growth_cost(recording), Measure)
