"""The ends and contents of steps. Runs are drawn, one character per millisecond:

    L M    a batch is fetched from a loader       B      backward pass
    V      the same, with gradients off           O D G  an optimizer steps
    W      another loader's, gradients on         .      anything else
    l v w  that loader has no batch left          |      the training calls step()

Equal adjacent letters are one event; a blank, which takes no time, separates two.
"""

import threading
from itertools import groupby

import pytest

from tb_bottleneck.monitor.steps.step_clock import StepClock, clock_cost_ns
from tb_bottleneck.monitor.steps.step_rows import StepRow

MS = 1_000_000


class Played:
    """A run of a drawing; `rows` are the clock's rows."""

    def __init__(self, drawing: str) -> None:
        self.now = 0
        self.rows: list[StepRow] = []
        self.clock = StepClock(self.rows.append, lambda: self.now)
        for letter, run in groupby(drawing):
            self._happens(letter, len(list(run)) * MS)

    def _happens(self, letter: str, took: int) -> None:
        clock, key = self.clock, ord(letter.upper())
        if letter in "LMVWlmvw":
            clock.fetch_begins(key)
            self.now += took
            for_training = letter.upper() != "V"
            if letter.isupper():
                clock.fetch_ends(key, 8, for_training)
            else:
                clock.fetch_fails(key, for_training)
        elif letter == "B":
            began = clock.backward_begins()
            self.now += took
            clock.backward_ends(began)
        elif letter in "ODG":
            clock.optimizer_begins(key)
            self.now += took
            clock.optimizer_ends(key)
        elif letter == "|":
            clock.step()
        else:
            self.now += took if letter == "." else 0

    def ms(self, column: str) -> list[float]:
        return [row.figures.get(column, -1) / (1 if column == "samples" else MS) for row in self.rows]

    def over(self) -> "Played":
        self.clock.finish()
        return self

    @property
    def walls(self) -> list[float]:
        return [row.wall_ns / MS for row in self.rows]


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


def test_gradient_accumulation_is_one_step() -> None:
    run = Played("L.BB LL.BB L.BBOL.BB L.BB LLL.BBOL")
    assert run.walls == [14, 16 - 1]
    assert run.ms("loader_wait") == [4, 5]
    assert run.ms("backward") == [6, 6]
    assert run.ms("samples") == [24, 24]


def test_several_batches_fetched_before_their_backward_passes_are_all_trained_on() -> None:
    """Hugging Face's Trainer fetches the batches of one accumulated step at once."""
    run = Played("L L L.B.B.BOL L L.B.B.BOL")
    assert run.ms("samples") == [24, 24]
    assert run.ms("loader_wait") == [3, 3]
    assert run.ms("evaluation") == [0, 0]


def test_a_batch_fetched_ahead_is_counted_once() -> None:
    """accelerate fetches the next batch before it returns the current one."""
    run = Played("L L.BOL.BOL.BOl.BOl")
    assert [row.figures.get("samples") for row in run.rows] == [16, 8, 8, None], "each in the step that waited for it"
    assert run.ms("evaluation") == [0, 0, 0, 0]


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


def test_evaluation_without_gradients_is_separate() -> None:
    run = Played("L.BOVV..VV..vL.BOL")
    assert run.walls == [4, 13]
    assert run.ms("evaluation") == [0, 9]
    assert run.ms("loader_wait") == [1, 1]
    assert run.ms("samples") == [8, 8]


def test_evaluation_with_gradients_on_is_detected_when_its_loader_runs_out() -> None:
    run = Played("L.BOWW..WW..wL.BOL")
    assert run.ms("evaluation") == [0, 9]
    assert run.ms("loader_wait") == [1, 1]
    assert run.ms("samples") == [8, 8]


def test_evaluation_that_is_broken_off_is_detected_by_the_next_update() -> None:
    run = Played("L.BOWW..WW..L.BOL")
    assert run.ms("evaluation") == [0, 8]
    assert run.ms("samples") == [8, 8]


def test_two_loaders_trained_on_together_both_count() -> None:
    run = Played("LM.BOLMM.BOL")
    assert run.ms("loader_wait") == [2, 3]
    assert run.ms("samples") == [16, 16]


def test_the_end_of_an_epoch_is_a_wait_for_the_loader() -> None:
    run = Played("L.BOllLLL.BOL")
    assert run.ms("loader_wait") == [1, 5]


def test_steps_by_hand_end_where_the_training_says_and_nowhere_else() -> None:
    run = Played("|L..BO..|L.BO.BO|.BO")
    assert run.walls == [7, 7]
    assert run.ms("samples") == [8, 8]


def test_samples_given_by_the_training_replace_counted_ones() -> None:
    run = Played("|L.BO")
    run.clock.step(samples=100)
    assert run.ms("samples") == [100]


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


@pytest.mark.parametrize("samples", [None, 5.0])
def test_a_batch_without_a_known_size_has_no_samples(samples: float | None) -> None:
    run = Played("")
    for _ in range(2):
        run.clock.fetch_begins(1)
        run.clock.fetch_ends(1, samples, True)
        run._happens("B", MS)
        run._happens("O", MS)
    run.clock.fetch_begins(1)
    assert [row.figures.get("samples") for row in run.rows] == [samples, samples]


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


def test_an_iterator_that_has_the_number_of_one_that_has_gone_is_another_one() -> None:
    """Python reuses the id of a deleted iterator: an evaluation with gradients on counted as training batches.

    training     LBO LBO l           LBO LBO l
    evaluation             L L L l
    """
    run = Played("LBO LBO l")
    run.clock.iterator_begins(ord("L"))
    for letter in "LLLl":
        run._happens(letter, MS)
    run.clock.iterator_begins(ord("L"))
    for letter in "LBOLBO":
        run._happens(letter, MS)
    run.over()
    assert run.ms("samples") == [8, 8, 8, 8]
    assert run.ms("evaluation") == [0, 0, 4, 0]
    assert run.clock.trained_iterators() == [ord("L")]


def test_an_evaluation_that_was_broken_off_and_left_its_id_is_detected() -> None:
    run = Played("MBO MBO LL..")
    run.clock.fetch_begins(99)  # the loader makes it
    run.clock.fetch_fails(99, True)
    run.clock.iterator_begins(ord("L"))
    for letter in "MBO":
        run._happens(letter, MS)
    run.over()
    assert run.ms("samples") == [8, 8, 8]
    assert run.ms("evaluation") == [0, 0, 4]


def test_batches_that_another_thread_fetches_are_no_wait() -> None:
    """With a loader that fetched on its own thread into a queue, every step waited 0 for data: the rule was clear,
    while the training waited for data.

        loader      LL LL LL LL
        training       ....BBBO...BBBO
    """
    run = Played("")
    clock = run.clock

    def fetches() -> None:
        for _ in range(3):
            clock.fetch_begins(1)
            clock.fetch_ends(1, 8, True)

    thread = threading.Thread(target=fetches)
    thread.start()
    thread.join()
    for letter in "BOBOBO":
        run._happens(letter, MS)
    clock.fetch_ends(1, 8, True)  # had begun before it was known whose it is
    clock.fetch_fails(1, True)
    run._happens("B", MS)
    run._happens("O", MS)
    assert clock.fetched_elsewhere
    assert len(run.rows) == 4
    assert all(row.figures.keys() == {"backward", "optimizer"} for row in run.rows)


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
