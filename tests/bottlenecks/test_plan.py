"""Plans: the best fix first, each simulated on top of the earlier ones; on drawn and simulated recordings."""

import pytest
from helpers.drawn_graphs import drawn_recording
from helpers.simulated_graphs import simulated_graph
from simulate.workload import healthy

from tb_bottleneck.base.deviations import RUN_TO_RUN_NOISE
from tb_bottleneck.bottlenecks.plan import WORTH_DOING, predict
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.sync.fixes import WAITS
from tb_bottleneck.replay.scenario import Scenario

# The loader and the save each keep the device waiting; a step of twenty columns has nine of one and six of the other.
TWICE_ILL = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    loader  #########...........#########...........
    launch  .........|...................|..........
    gpu     ..........####................####......
    save    ..............######..............######
"""
STALLED = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  ||........||........
    gpu     .##....##..##....##.
"""


def test_the_best_fix_comes_first_and_times_shrink():
    prediction = predict(drawn_recording(TWICE_ILL), ["checkpointing", "loader_in_main_process"])
    assert [step.cause for step in prediction.plan] == ["loader_in_main_process", "checkpointing"]
    first, second = prediction.plan
    assert first.total.expected == pytest.approx(40 / 24 / 1.075, rel=0.02), "nine columns of each step become one"
    limit = "six more columns of each step would go, but one worker takes 18 columns and a tenth for the two batches"
    assert second.total.expected == pytest.approx(40 / 18 / 1.1, rel=0.02), limit
    assert second.step_ns == pytest.approx(2_000_000 / second.total.expected)


def test_workers_that_are_behind_take_the_gain_of_every_other_fix():
    """The save takes six of twenty columns, but without it the process would wait six columns longer for its batch."""
    prediction = predict(drawn_recording(TWICE_ILL.replace("loader ", "workers")), ["checkpointing", "too_few_workers"])
    assert prediction.gains["checkpointing"].expected == pytest.approx(1, abs=0.01)
    assert prediction.gains["too_few_workers"].expected > 1.5
    assert [step.cause for step in prediction.plan] == ["too_few_workers", "checkpointing"]
    limit = "twice the workers need ten columns and a tenth for a batch"
    assert prediction.plan[1].total.expected == pytest.approx(40 / 20 / 1.1, rel=0.02), limit


def test_gains_of_single_fixes_do_not_depend_on_the_order():
    one, other = (
        predict(drawn_recording(TWICE_ILL), causes).gains
        for causes in (["checkpointing", "loader_in_main_process"], ["loader_in_main_process", "checkpointing"])
    )
    assert one == other
    assert one["loader_in_main_process"].expected > one["checkpointing"].expected > 1


def test_two_causes_with_one_fix_make_one_step():
    prediction = predict(drawn_recording(TWICE_ILL), ["loader_in_main_process", "too_few_workers"])
    assert set(prediction.gains) == {"loader_in_main_process", "too_few_workers"}
    assert len(prediction.plan) == 1


def test_a_fix_that_gains_nothing_is_no_step():
    prediction = predict(drawn_recording(TWICE_ILL), ["empty_cache"])
    assert prediction.plan == ()
    assert prediction.gains["empty_cache"].expected == pytest.approx(1, abs=WORTH_DOING)


def test_a_cause_without_a_scenario_is_left_out():
    assert predict(drawn_recording(TWICE_ILL), ["oversubscribed_threads"]).gains == {}


def test_nothing_is_predicted_from_a_recording_that_is_not_explained():
    prediction = predict(drawn_recording(STALLED), ["small_kernels"])
    assert not prediction.check.trusted
    assert prediction.gains == {}
    assert prediction.plan == ()
    assert prediction.host_scale is None


def test_bounds_hold_what_is_expected_and_the_noise_between_two_runs():
    gain = predict(drawn_recording(TWICE_ILL), ["checkpointing"]).gains["checkpointing"]
    assert gain.low * (1 + RUN_TO_RUN_NOISE) <= gain.expected <= gain.high / (1 + RUN_TO_RUN_NOISE)
    assert gain.low >= 1


def test_a_healthy_training_has_no_plan():
    recording = simulated_graph(healthy(3)).base.recording
    causes = ["loader_in_main_process", "metric_reads", "small_kernels", "host_python", "empty_cache", "checkpointing"]
    assert predict(recording, causes).plan == ()


WAITING = """
    step    aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    launch  |.......|.......|.......|.......
    sync    .######..........######.........
    gpu     .######..######..######..######.
"""


def test_fixes_that_gain_only_together_are_taken_as_a_group(monkeypatch):
    halves = {cause: Scenario(cause, _half) for cause in ("first", "second")}
    known = scenarios() | halves
    monkeypatch.setattr("tb_bottleneck.bottlenecks.plan.scenarios", lambda: known)
    prediction = predict(drawn_recording(WAITING), ["first", "empty_cache", "second"])
    assert all(gain.expected < 1 + WORTH_DOING for gain in prediction.gains.values())
    assert sorted(step.cause for step in prediction.plan) == ["first", "second"], "the cache has nothing to do with it"
    assert prediction.plan[-1].total.expected > 1.2


def _half(graph, estimate):
    """One of two fixes that take effect only together: the first sets a floor as a mark, the second removes waits."""
    return WAITS.apply(graph, estimate) if graph.floor else graph.with_floor(1.0)
