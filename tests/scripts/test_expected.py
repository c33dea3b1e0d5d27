"""The expected time on another device against simulated pairs, with other seeds than the published page."""

from statistics import fmean

import expected
import pytest
from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.other_device import THERE, OtherDevice
from simulate.training import program_of
from simulate.workload import healthy, random_workload

SEEDS = range(700_000, 700_000 + 2 * len(THERE))


@pytest.mark.nightly
def test_predictions_with_true_data_sheets_are_accurate():
    """Kernel times follow the data sheets exactly: only errors of the replay and the jitter of the host remain."""
    pairs = [
        expected.pair(random_workload(seed), THERE[seed % len(THERE)], seed, missed=0.0, host=0.0) for seed in SEEDS
    ]
    assert fmean(abs(one.error) for one in pairs) < 0.06, [(one.seed, one.device, one.error) for one in pairs]
    assert sum(one.inside for one in pairs) >= 0.85 * len(pairs)


def test_a_training_bound_by_its_device_gains_what_its_kernels_gain():
    for device in ("NVIDIA H200", "Tesla V100-SXM2-32GB"):
        for seed in (5, 6, 7):
            error = expected.pair(healthy(seed).but(loader=""), device, seed, missed=0.0, host=0.0).error
            assert abs(error) < 0.05, (device, seed)


@pytest.mark.nightly
def test_most_intervals_contain_the_result_if_kernels_miss_their_data_sheets():
    pairs = [
        expected.pair(random_workload(seed), THERE[seed % len(THERE)], seed)
        for seed in range(710_000, 710_000 + 3 * len(THERE))
    ]
    assert sum(one.inside for one in pairs) >= 0.85 * len(pairs)
    assert fmean(abs(one.error) for one in pairs) < 0.2


def test_on_the_other_device_the_program_is_the_same():
    there = OtherDevice("NVIDIA H200", 3, missed=0.0, host=0.0)
    program = program_of(healthy(3))
    moved = there.program(program)
    assert len(moved.instructions) == len(program.instructions)
    text = there.relabelled(kineto_json(Machine(moved).run(), Recording(DIALECTS[3])))
    assert '"NVIDIA H200"' in text
    assert '"numSms": 132' in text


def test_the_page_has_a_row_for_each_device_and_one_for_all():
    pairs = [expected.pair(healthy(seed), device, seed) for seed, device in enumerate(THERE[:2])]
    rows = "\n".join(expected.table(pairs))
    assert "Tesla V100-SXM2-32GB | 1 |" in rows
    assert "| **all** | 2 |" in rows


def test_the_demo_s_own_pair_is_on_the_page():
    rows = [row for row in expected.recorded_pairs() if row.startswith("| the demo's loader")]
    assert len(rows) == 1
    assert "the loader had 2 workers" in rows[0]
    assert rows[0].count("x |") == 3, "expected, measured, and measured without a profiler"
