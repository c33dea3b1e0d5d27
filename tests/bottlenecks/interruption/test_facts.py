"""Interruptions: their kinds, how often they recur, and the time of a step with and without one."""

import pytest
from helpers.draw import drawn_trace
from simulate.examine import measured
from simulate.workload import healthy

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.host.facts import longest_host_pause, steps_between_pauses
from tb_bottleneck.bottlenecks.interruption.facts import (
    checkpoints,
    costliest_interruption,
    evaluations,
    garbage_collections,
    interrupted_step,
    log_writes,
    steps_between_interruptions,
    usual_step,
)
from tb_bottleneck.trace.steps import find_steps

# Two steps of about 2 ms without one, then one with a checkpoint of 9 ms.
SAVING = healthy(1).but(steps=13, layers=5, kernel_ns=130_000, loader="", save_every=3, save_ns=9_000_000, stacks=True)


def test_a_checkpoint_in_every_third_step_has_its_period():
    recording = measured(SAVING)
    assert checkpoints(recording).count == 4
    assert 4 * 8e6 < checkpoints(recording).value < recording.account.window  # with the waits for the device inside
    assert costliest_interruption(recording).text == "torch/serialization.py(943): save"
    assert steps_between_interruptions(recording).value == 3
    assert interrupted_step(recording).value > 3 * usual_step(recording).value
    assert log_writes(recording).value == garbage_collections(recording).value == evaluations(recording).value == 0


def test_one_alone_has_no_period():
    recording = measured(SAVING.but(save_every=9))
    assert "once in" in steps_between_interruptions(recording).because
    assert interrupted_step(recording).count == 1


def test_every_step_interrupted_has_no_usual_step():
    recording = measured(SAVING.but(save_every=1))
    assert steps_between_interruptions(recording).value == 1
    assert isinstance(usual_step(recording), Missing)
    assert isinstance(interrupted_step(recording), Missing), "a step with it tells nothing beside none without"


# Every second step takes twice as long, and a checkpoint of 1 ms is written in each of the others.
UNEVEN = """
    step    aaaaaaaaaabbbbbbbbbbbbbbbbbbbbccccccccccddddddddddddddddddddeeeeeeeeeeffffffffffffffffffff
    op      #########.############################.#############################.####################
    save    .........#.............................#.............................#....................
"""


def test_steps_that_vary_by_more_than_an_interruption_do_not_show_its_cost():
    trace = drawn_trace(UNEVEN, 1000, deviceProperties=[])
    recording = Recording(trace, find_steps(trace))
    assert steps_between_interruptions(recording).value == 2
    assert isinstance(interrupted_step(recording), Missing)
    assert isinstance(usual_step(recording), Missing)


def test_garbage_and_evaluations_are_kinds_of_their_own():
    collecting = measured(SAVING.but(save_every=0, collect_every=2, collect_ns=3_000_000))
    assert garbage_collections(collecting).value == pytest.approx(6 * 3e6, rel=0.2)
    assert steps_between_interruptions(collecting).value == 2
    evaluating = measured(SAVING.but(save_every=0, evaluate_every=3))
    assert evaluations(evaluating).count == 4
    assert checkpoints(evaluating).value == 0


def test_without_interruptions_there_are_no_measures():
    recording = measured(SAVING.but(save_every=0))
    assert checkpoints(recording).value == 0
    assert isinstance(steps_between_interruptions(recording), Missing)
    assert isinstance(costliest_interruption(recording), Missing)
    unseen = measured(SAVING.but(stacks=False))
    assert "with_stack" in checkpoints(unseen).because


def test_a_pause_that_no_frame_explains_still_has_a_period():
    """The same checkpoints, recorded without frames: Python keeps the device idle in every third step."""
    recording = measured(SAVING.but(stacks=False))
    assert steps_between_pauses(recording).value == 3
    assert longest_host_pause(recording).value > 1e6
    assert steps_between_pauses(measured(SAVING.but(save_every=1, stacks=False))).value == 1


# A step of 10 ms takes 4 ms longer with the first checkpoint, and 12 ms longer with the second.
TWO_SAVES = """
    step    aaaaaaaaaabbbbbbbbbbbbbbccccccccccddddddddddddddddddddddeeeeeeeeeeffffffffff
    op      aaaaaaaaaabbbbbbbbbb....ccccccccccdddddddddd............eeeeeeeeeeffffffffff
    save    ....................####....................############....................
"""


def test_what_a_step_with_an_interruption_takes_longer_adds_up_to_the_time_of_all():
    trace = drawn_trace(TWO_SAVES, 1000, deviceProperties=[])
    recording = Recording(trace, find_steps(trace))
    saves = checkpoints(recording)
    longer = interrupted_step(recording).value - usual_step(recording).value
    assert saves.count == 2
    assert saves.count * longer == pytest.approx(saves.value)


def test_the_row_that_is_named_is_of_the_costliest_kind():
    """Two kinds: the checkpoints take longer than the collections, although a collection is the commonest row."""
    recording = measured(SAVING.but(collect_every=1, collect_ns=1_000_000))
    assert checkpoints(recording).value > garbage_collections(recording).value
    assert "save" in costliest_interruption(recording).text
    assert steps_between_interruptions(recording).value == 3
