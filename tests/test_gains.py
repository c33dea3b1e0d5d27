"""Predicted gains beside true ones: a few of each planted illness; tests/GAINS.md holds many."""

import pytest
from gains import TARGET_MEDIAN, TARGET_WORST, page, recorded
from simulate.cures import CURES
from simulate.illnesses import ILLNESSES
from simulate.machine import Machine
from simulate.pairs import planned, simulated
from simulate.training import program_of

# Another range than the one that the page is measured with.
SEEDS = range(4_000, 4_003)


@pytest.mark.parametrize("name", CURES)
def test_a_predicted_gain_comes_true(name):
    pairs = [simulated(name, seed) for seed in SEEDS]
    assert any(pair.predicted for pair in pairs), "nothing was predicted"
    errors = sorted(abs(pair.error) for pair in pairs if pair.predicted)
    assert errors[len(errors) // 2] <= TARGET_MEDIAN, pairs
    assert errors[-1] <= TARGET_WORST, pairs


@pytest.mark.parametrize("name", CURES)
def test_a_cure_of_the_simulator_cures(name):
    """The cured program is shorter: else the page would compare predictions with nothing."""
    program = program_of(ILLNESSES[name].make(4_100))
    cured = CURES[name](program, 4)
    ill_end, cured_end = (max(op.end for op in Machine(each).run().ops) for each in (program, cured))
    if name in ("loader in the main process", "too few workers"):
        return  # their cured programs begin with an empty queue of batches, and so begin later
    assert cured_end < ill_end


def test_the_gain_of_a_plan_comes_true():
    pairs = [planned(seed) for seed in range(4_200, 4_212)]
    errors = sorted(abs(pair.error) for pair in pairs if pair.predicted)
    assert len(errors) >= len(pairs) // 2
    assert errors[len(errors) // 2] <= TARGET_MEDIAN, pairs


def test_recorded_pairs_are_shown_with_what_was_measured():
    for pair in recorded():
        assert pair.true > 1


def test_the_page_has_a_line_for_each_illness():
    text = "\n".join(page(2 * len(CURES)))
    assert all(f"| {name} |" in text for name in CURES)
