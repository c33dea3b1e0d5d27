"""Trainings with other threads, processes, monitors, and compiled or copied models."""

import copy
import logging
import os
import pickle
import queue
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.quick_monitor import quick
from monitor.training import STEPS, Training
from monitor.written import event_files, read
from torch.utils.data import dataloader as torch_dataloader

pytestmark = pytest.mark.usefixtures("torch_is_left_as_it_was")


def test_batches_from_a_thread_of_the_users_are_no_wait_of_zero(tmp_path: Path) -> None:
    training, batches = Training(), queue.Queue[Any](maxsize=2)

    def loads() -> None:
        for _ in range(3):
            for batch in training.loader:
                batches.put(batch)
        batches.put(None)

    with quick(tmp_path):
        thread = threading.Thread(target=loads)
        thread.start()
        while batches.qsize() < 2:
            time.sleep(0.001)
        for batch in iter(batches.get, None):
            training.step(batch)
        thread.join()
    written = read(tmp_path)
    assert written.numbers == list(range(3 * STEPS))
    assert written.column("loader_wait") == written.column("samples") == []
    because = {one.name: one.because for one in written.contexts[-1].unsupported}
    assert "another thread" in because["loader_wait"]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_loader_workers_are_left_alone(tmp_path: Path, start: str) -> None:
    with quick(tmp_path):
        Training(workers=2, start=start).run(epochs=1)
    written = read(tmp_path)
    assert written.numbers == list(range(STEPS))
    assert len(event_files(tmp_path)) == 1
    assert written.facts["worker_start"] == start


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_writes_nothing_of_ours(tmp_path: Path) -> None:
    with quick(tmp_path) as monitor:
        training = Training()
        training.run()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                training.run()
                monitor.step()
                monitor.stop()
                status = 0 if threading.active_count() == 1 else 2
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        training.run()
    assert read(tmp_path).numbers == list(range(2 * STEPS))


def test_two_monitors_are_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    training = Training()
    with quick(tmp_path / "first"):
        with caplog.at_level(logging.WARNING), quick(tmp_path / "second") as second:
            training.run()
        assert "another Monitor" in caplog.text
        training.run()
        second.step()
    assert len(read(tmp_path / "first").numbers) == 2 * STEPS + 1, "steps of the second are also recorded by the first"
    assert not (tmp_path / "second").exists()


def test_a_monitor_can_be_used_again(tmp_path: Path) -> None:
    monitor = quick(tmp_path)
    for _ in range(2):
        with monitor, monitor:
            Training().run()
    assert len(event_files(tmp_path)) == 2


def test_other_threads_may_train_too(tmp_path: Path) -> None:
    """They have no effect: the steps are those of the thread that trained first."""
    with quick(tmp_path):
        Training().step(next(iter(Training().loader)))
        threads = [threading.Thread(target=Training().run) for _ in range(3)]
        for thread in threads:
            thread.start()
        Training().run(epochs=2)
        for thread in threads:
            thread.join()
    assert read(tmp_path).numbers == list(range(2 * STEPS + 1))


def within_the_backward_pass(training: Training, batch: Any, does: Any) -> None:
    """Trains on one batch and calls `does` during the backward pass."""
    handle = training.model.layer.weight.register_hook(lambda _gradient: does())
    training.step(batch)
    handle.remove()


def test_another_threads_optimizer_is_not_taken_for_one_in_the_backward_pass(tmp_path: Path) -> None:
    """On a loaded machine steps were missing: another thread's optimizer began its step during this thread's backward
    pass and ended later; ours stepped in between and counted as a part of it. So two steps became one.

        this thread    fetch  BBBBBBBB  ours  | fetch ...
        another              theirs-----------------
    """
    training, other = Training(), Training()
    inside, ours_stepped = threading.Event(), threading.Event()

    def begins(*_: object) -> None:
        inside.set()
        assert ours_stepped.wait(30)

    # Registered after ours, so that ours hears of the step before it is held.
    def slow_step() -> None:
        handle = other.optimizer.register_step_pre_hook(begins)
        other.optimizer.step()
        handle.remove()

    def another_steps() -> None:
        thread.start()
        assert inside.wait(30)

    thread = threading.Thread(target=slow_step)
    with quick(tmp_path):
        for index, batch in enumerate(training.loader):
            within_the_backward_pass(training, batch, another_steps if index == 4 else lambda: None)
            if index == 4:
                ours_stepped.set()
                thread.join()
    assert read(tmp_path).numbers == list(range(STEPS))


def test_an_optimizer_on_autograds_own_thread_is_detected(tmp_path: Path) -> None:
    """With gradients computed on a device, an optimizer that steps inside the backward pass is called on a thread
    started by C++."""
    import _thread

    training = Training()

    def steps_elsewhere() -> None:
        done = threading.Event()
        _thread.start_new_thread(lambda: (training.optimizer.step(), done.set()), ())
        assert done.wait(30)

    with quick(tmp_path):
        for batch in training.loader:
            loss = torch.nn.functional.mse_loss(training.model(batch[0]), batch[1])
            handle = training.model.layer.bias.register_hook(lambda _gradient: steps_elsewhere())
            loss.backward()
            handle.remove()
    assert read(tmp_path).numbers == list(range(STEPS))


def test_what_is_trained_with_can_be_pickled_and_copied(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path, model=training.model):
        training.run()
        for one in (training.model, training.optimizer, training.loader):
            assert type(pickle.loads(pickle.dumps(one))) is type(one)
            assert type(copy.deepcopy(one)) is type(one)
        iterator = iter(training.loader)
        assert type(iterator) is torch_dataloader._SingleProcessDataLoaderIter
        assert len(iterator) == STEPS
        text = pickle.dumps(training.model)
    assert b"tb_bottleneck" not in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_compiled_model_and_a_compiled_optimizer_are_not_broken_in_two(tmp_path: Path) -> None:
    training = Training()
    model = torch.compile(training.model, backend="eager", fullgraph=True)
    step = torch.compile(training.optimizer.step, backend="eager")
    with quick(tmp_path, model=model):
        for batch in training.loader:
            training.optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(batch[0]), batch[1]).backward()
            step()
    written = read(tmp_path)
    assert not [note for note in written.notes if note == "signal_off"]
    assert written.facts["model_wrappers"] == ["OptimizedModule"] or list(written.facts["model_wrappers"])


def test_a_model_compiled_in_place_is_left_alone(tmp_path: Path) -> None:
    training = Training()
    training.model.compile(backend="eager", fullgraph=True)
    with quick(tmp_path, model=training.model):
        training.run()
    written = read(tmp_path)
    assert len(written.numbers) == STEPS
    assert written.column("forward") == []
