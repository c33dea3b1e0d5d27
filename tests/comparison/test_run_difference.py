"""Mean steps of whole runs: the interval holds the true ratio, and equal programs differ by noise."""

import numpy as np
import pytest

from tb_bottleneck.base.deviations import MEAN_STEP_ON_CPU
from tb_bottleneck.comparison.ci_gates import slowdown_violation
from tb_bottleneck.comparison.run_difference import run_difference
from tb_bottleneck.report.builders.telemetry_inputs import _mean_error
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.schema.bottleneck_pb2 import Spread, Window


def window(rng, mean, steps=400):
    """Returns the window of a run: a start of its own, slow waves, noise, and a pause in every fiftieth step."""
    start = rng.normal(0, MEAN_STEP_ON_CPU)
    waves = 0.1 * np.sin(np.linspace(0, 6, steps) + rng.uniform(0, 6))
    times = mean * np.exp(start + waves + rng.normal(0, 0.1, steps))
    times[::50] += 3 * mean
    error = _mean_error(times, np.ones(steps, np.int64))
    return Window(steps=steps, step_ns=Spread(mean=float(times.mean())), mean_error=error)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0])
def test_the_interval_holds_the_ratio_of_19_in_20_pairs(ratio):
    rng = np.random.default_rng(int(10 * ratio))
    pairs = [run_difference(window(rng, 1e7 * ratio), window(rng, 1e7), (1, 1), on_device=False) for _ in range(200)]
    assert sum(pair.low <= ratio <= pair.high for pair in pairs) >= 190
    named = [pair.difference for pair in pairs]
    assert named.count("none") >= 190 if ratio == 1 else named.count("faster") >= 150


def test_times_per_sample_and_runs_that_nobody_timed():
    a, b = (Window(steps=50, step_ns=Spread(mean=mean), mean_error=0.001) for mean in (4e6, 6e6))
    found = run_difference(a, b, (32, 64), on_device=True)
    assert found.speedup == pytest.approx(4 / 3)
    assert found.difference == "faster"
    assert run_difference(a, None, (1, 1), on_device=True) is None
    assert run_difference(a, Window(mean_error=0.0), (1, 1), on_device=True) is None
    assert run_difference(a, Window(steps=50, step_ns=Spread(mean=6e6)), (1, 1), on_device=True) is None


def test_few_steps_have_no_error_of_their_mean():
    assert _mean_error(np.ones(19), np.ones(19, np.int64)) is None
    assert _mean_error(np.ones(20), np.ones(20, np.int64)) == 0.0


@pytest.mark.parametrize(("mean", "fails"), [(1.2e7, True), (1.03e7, False), (0.8e7, False)])
def test_a_gate_fails_for_whole_runs_that_are_slower(mean, fails):
    comparison = pb.Comparison(comparable=True, per="step", difference="none")
    a, b = (Window(steps=500, step_ns=Spread(mean=each), mean_error=0.001) for each in (1e7, mean))
    comparison.run.CopyFrom(run_difference(a, b, (1, 1), on_device=True))
    assert (slowdown_violation(comparison, 0.05) is not None) == fails
