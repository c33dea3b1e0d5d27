"""The ends and contents of steps. Runs are drawn, one character per millisecond:

    L M    a batch is fetched from a loader       B      backward pass
    V      the same, with gradients off           O D G  an optimizer steps
    W      another loader's, gradients on         .      anything else
    l v w  that loader has no batch left          |      the training calls step()
    C      a checkpoint is written

Equal adjacent letters are one event; a blank, which takes no time, separates two."""

import threading

import pytest
from monitor.steps.played_clock import MS, Played

from tb_bottleneck.monitor.steps.step_clock import clock_cost_ns


def test_an_ordinary_loop_has_a_step_for_each_update() -> None:
    run = Played("LLL..BBBBOL..BBBBO.LL")
    assert run.walls == [10, 8]
    assert run.ms("loader_wait") == [3, 1]
    assert run.ms("backward") == [4, 4]
    assert run.ms("optimizer") == [1, 1]
    assert run.ms("samples") == [8, 8]
    assert [row.number for row in run.rows] == [0, 1]


def test_what_follows_an_update_belongs_to_the_step_after_it() -> None:
    run = Played("L.BO...L.BO...L")
    assert run.walls == [4, 7]
    assert [row.end_ns / MS for row in run.rows] == [4, 11]


@pytest.mark.parametrize(
    ("drawing", "walls", "checkpoints"),
    [
        ("L.BOL.BOCCCCL.BOL.BOL", [4, 4, 8, 4], [0, 0, 4, 0]),  # the next fetch ends the step at its update
        ("L.BOL.BOCCBOL.BOL", [4, 8, 4], [0, 2, 0]),  # between two updates of one step
        ("L.BOL.CBOL.BOL", [4, 5, 4], [0, 1, 0]),  # within a step
        (".BO.BOCC.BO.BO", [2, 3, 5, 3], [0, 0, 2, 0]),  # no loader: each update ends its step
        (".BOCC.BO.BO", [2, 5, 3], [0, 2, 0]),  # from the first step on
        ("|L.BO|L.BOCC|L.BO|", [4, 6, 4], [0, 2, 0]),  # step() ends it
    ],
)
def test_a_checkpoint_is_in_the_step_whose_time_it_takes(
    drawing: str, walls: list[float], checkpoints: list[float]
) -> None:
    run = Played(drawing)
    assert run.walls == walls
    assert [max(ms, 0) for ms in run.ms("checkpoint")] == checkpoints


def test_gradient_accumulation_is_one_step() -> None:
    run = Played("L.BB LL.BB L.BBOL.BB L.BB LLL.BBOL")
    assert run.walls == [14, 16 - 1]
    assert run.ms("loader_wait") == [4, 5]
    assert run.ms("backward") == [6, 6]
    assert run.ms("samples") == [24, 24]


def test_two_optimizers_are_one_step() -> None:
    run = Played("L.BDD.BGL.BDD.BGL")
    assert run.walls == [8, 8]
    assert run.ms("optimizer") == [3, 3]


def test_two_optimizers_without_a_loader_are_one_step_too() -> None:
    run = Played(".BD.BG.BD.BG.BD.BG.BD")
    assert run.walls[1:] == [6, 6]
    assert len(run.rows) == 3


def test_without_a_loader_each_update_ends_a_step_at_once() -> None:
    run = Played(".BO..BO...BO")
    assert run.walls == [2, 4, 5]
    assert "loader_wait" not in run.rows[-1].figures, "without a loader there is no wait"


def test_several_updates_on_one_batch_are_one_step() -> None:
    run = Played("L.BO.BO.BOL.BO.BO.BOL")
    assert run.walls == [10, 10]


def test_one_batch_trained_on_for_ever_still_has_steps() -> None:
    run = Played("L" + ".BO" * 40)
    assert len(run.rows) > 20
    assert run.walls[-1] == 3


def test_steps_by_hand_end_where_the_training_says_and_nowhere_else() -> None:
    run = Played("|L..BO..|L.BO.BO|.BO")
    assert run.walls == [7, 7]
    assert run.ms("samples") == [8, 8]


def test_an_update_inside_the_backward_pass_ends_the_step_after_it() -> None:
    run = Played("L.")
    for _ in range(2):
        began = run.clock.backward_begins()
        for parameter in (1, 2, 3):
            run.now += MS
            run.clock.optimizer_begins(parameter)
            run.clock.optimizer_ends(parameter)
        run.now += MS
        run.clock.backward_ends(began)
        run._happens("L", MS)
    assert run.walls == [6, 5]


def test_a_closure_run_by_the_optimizer_is_not_the_optimizers_time() -> None:
    run = Played("L.")
    run.clock.optimizer_begins(1)
    run.now += MS
    run._happens("B", 5 * MS)
    run.now += MS
    run.clock.optimizer_ends(1)
    run._happens("L", MS)
    assert (run.ms("backward"), run.ms("optimizer")) == ([5], [2])


def test_an_optimizer_inside_another_is_part_of_it() -> None:
    run = Played("L.B")
    run.clock.optimizer_begins(1)
    run._happens("G", 2 * MS)
    run.now += MS
    run.clock.optimizer_ends(1)
    run._happens("L", MS)
    assert run.ms("optimizer") == [3]


def test_after_an_update_that_raised_the_next_one_is_whole_again() -> None:
    run = Played("L.B")
    run.clock.optimizer_begins(ord("D"))  # and it never ends
    for letter in "LBO":
        run._happens(letter, MS)
    run._happens("L", MS)
    assert run.ms("optimizer") == [1]


def test_the_training_thread_is_the_one_that_runs_backward() -> None:
    run = Played("")
    assert run.clock.is_training_thread()
    result: list[bool] = []

    def training() -> None:
        run._happens("B", MS)
        result.append(run.clock.is_training_thread())

    thread = threading.Thread(target=training)
    thread.start()
    thread.join()
    assert result == [True]
    assert not run.clock.is_training_thread()


def test_without_a_backward_pass_the_training_thread_is_the_one_that_updates() -> None:
    run = Played("LLO")
    assert run.clock.thread == threading.get_ident()
    assert not run.clock.fetched_elsewhere


@pytest.mark.parametrize(
    ("drawing", "walls"),
    [
        ("LLBBBO LLBBO.", [6, 5]),  # left by a break
        ("LLBBBO LLBBO LL", [6, 5]),
        ("LLBBBO LLBB", [6]),  # no optimizer was done with it
        ("BBBO.BBBO.BBBO", [4, 5, 5]),
        ("..|BBBO|", [4]),  # the training says where steps end
    ],
)
def test_the_last_step_is_closed_at_the_end(drawing: str, walls: list[float]) -> None:
    assert Played(drawing).over().walls == walls
    assert Played(drawing).over().over().walls == walls


def test_the_clock_measures_its_own_cost() -> None:
    assert 100 < clock_cost_ns() < 10_000_000


def test_what_the_end_of_a_step_starts_is_no_wait_for_the_loader() -> None:
    played = Played("LLBOLBO")
    played.clock._ended = lambda row: played.rows.append(row) or setattr(played, "now", played.now + 500 * MS)
    for letter in "LBOLBO":
        played._happens(letter, MS)
    assert max(played.over().ms("loader_wait")) < 10
