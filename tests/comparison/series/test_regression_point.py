"""Since which run a row of runs is slower, and in which regime; and that noise makes no turn."""

import numpy as np

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.comparison.series.explanations import regression_point_of


def row(*steps, jitter=0.01):
    """Returns runs with steps of about this many ms: up to 10 ms `compute`, the rest `sync`."""
    rng = np.random.default_rng(3)
    times, accounts = [], []
    for ms in steps:
        one = rng.normal(ms * 1e6, ms * 1e6 * jitter, 8)
        times.append(one)
        account = dict.fromkeys(REGIMES, 0.0) | {"compute": 10e6}
        accounts.append(account | {"sync": float(one.mean()) - 10e6})
    return regression_point_of([f"run{number}" for number in range(len(steps))], times, accounts, "step")


def test_the_first_slower_run_and_the_regime_that_grew():
    found = row(10.5, 10.4, 10.6, 14.0, 13.9)
    assert (found.last_good, found.since, found.regime) == ("run2", "run3", "sync")
    assert 1.3 < found.slowdown < 1.36
    assert "run3" in found.because
    assert "host waits for the device" in found.because


def test_noise_is_no_regression():
    assert row(10.5, 10.6, 10.4, 10.7, 10.5, jitter=0.05) is None


def test_a_change_of_less_than_a_twentieth_is_not_told():
    assert row(10.5, 10.5, 10.8, 10.8) is None


def test_a_faster_run_is_no_regression():
    assert row(14.0, 14.0, 10.5, 10.5) is None


def test_a_gain_does_not_hide_the_loss_after_it():
    """The best split is where the runs got faster; a later loss is found among the runs since then."""
    found = row(20.0, 20.0, 10.5, 10.5, 14.0, 14.0)
    assert (found.last_good, found.since) == ("run3", "run4")
    assert "1.33 times what it was from run2 to run3 (10.5 ms to 14" in found.because


def test_a_recovered_loss_is_no_regression():
    assert row(10.5, 10.5, 20.0, 20.0, 10.5, 10.5, 10.5, 10.5, 10.5) is None
