"""Which batches, waits and samples belong to a step, and which to an evaluation or another thread."""

import threading

import pytest
from monitor.steps.played_clock import MS, Played


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


def test_samples_given_by_the_training_replace_counted_ones() -> None:
    run = Played("|L.BO")
    run.clock.step(samples=100)
    assert run.ms("samples") == [100]


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
