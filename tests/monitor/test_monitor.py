"""A monitor around real trainings on the CPU: its output, and that it never disturbs the training."""

import copy
import errno
import logging
import math
import os
import pickle
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.training import BATCH, STEPS, Model, Numbers, Training
from monitor.written import event_files, read
from torch.optim import optimizer as torch_optimizer
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as torch_dataloader

from tb_bottleneck import Monitor
from tb_bottleneck.monitor import monitor as module
from tb_bottleneck.monitor.samplers.sampler import Reading

PATCHED = {
    "DataLoader.__iter__": lambda: DataLoader.__iter__,
    "iterator.__next__": lambda: torch_dataloader._BaseDataLoaderIter.__next__,
    "backward": lambda: torch.autograd.backward,
    "profile": lambda: dict(vars(torch.autograd.profiler.profile)),
    "Tensor": lambda: {name: vars(torch.Tensor).get(name) for name in ("to", "cuda", "cpu", "item", "__bool__")},
    "Model": lambda: dict(vars(Model)),
    "hooks before": lambda: dict(torch_optimizer._global_optimizer_pre_hooks),
    "hooks after": lambda: dict(torch_optimizer._global_optimizer_post_hooks),
}


@pytest.fixture(autouse=True)
def torch_is_left_as_it_was() -> Iterator[None]:
    before = {name: look() for name, look in PATCHED.items()}
    yield
    assert {name: look() for name, look in PATCHED.items()} == before
    assert module._active is None


def quick(logdir: Path, **options: Any) -> Monitor:
    return Monitor(logdir, **{"captures": 0, "every_s": 0.1, **options})


def test_an_ordinary_loop_needs_one_line(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run(epochs=3)
    written = read(tmp_path)
    assert written.numbers == list(range(3 * STEPS))
    assert written.column("samples") == [BATCH] * 3 * STEPS
    for name in ("loader_wait", "backward", "optimizer"):
        assert all(value > 0 for value in written.column(name)), name
    assert written.column("transfer") == []
    assert "transfer" in {one.name for one in written.contexts[-1].unsupported}
    assert [packet.sequence for packet in written.packets] == list(range(len(written.packets)))


def test_times_of_a_step_fit_into_it(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path, model=training.model):
        training.run(epochs=2)
    written = read(tmp_path)
    walls = [wall for packet in written.packets for wall in packet.steps.wall_ns]
    parts = zip(*(written.column(name) for name in ("loader_wait", "forward", "backward", "optimizer")), strict=True)
    assert all(sum(row) <= wall for row, wall in zip(parts, walls, strict=True))
    ends = [end for packet in written.packets for end in packet.steps.end_unix_ns]
    assert all(abs(after - before - wall) < 5e6 for before, after, wall in zip(ends, ends[1:], walls[1:], strict=False))


def test_scalars_for_the_stock_tab_have_steps_that_only_grow(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run(epochs=20)
    scalars = read(tmp_path).scalars
    assert {"bottleneck/step_time_ms", "bottleneck/loader_share", "bottleneck/samples_per_second"} <= set(scalars)
    for points in scalars.values():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps))
        assert all(math.isfinite(value) for _, value in points)


def test_facts_are_written(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run()
    facts = read(tmp_path).facts
    assert (facts["workers"], facts["batch_size"], facts["pin_memory"]) == (0, BATCH, False)
    assert (facts["optimizer"], facts["matmul_precision"]) == ("AdamW", torch.get_float32_matmul_precision())
    assert dict(facts["parameters_by_dtype"]) == {"float32": 4}
    assert facts["torch"] == torch.__version__


def test_its_own_cost_is_one_of_the_series(tmp_path: Path) -> None:
    with quick(tmp_path):
        Training().run(epochs=10)
    cost = read(tmp_path).series("monitor_cost")
    assert cost
    assert all(0 < value < 2 for value in cost)


def test_steps_by_hand_without_an_optimizer(tmp_path: Path) -> None:
    with quick(tmp_path) as monitor:
        for _ in range(5):
            torch.ones(3).sum()
            monitor.step(samples=7)
    written = read(tmp_path)
    assert written.numbers == [0, 1, 2, 3], "the first has no beginning"
    assert written.column("samples") == [7] * 4


def test_a_loop_that_is_left_by_a_break_keeps_its_last_step(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path):
        for index, batch in enumerate(training.loader):
            training.step(batch)
            if index == 4:
                break
    written = read(tmp_path)
    assert written.numbers == [0, 1, 2, 3, 4]
    assert written.notes[-1] == "ended"


def test_evaluation_inside_is_no_training(tmp_path: Path) -> None:
    training, evaluation = Training(), Training()
    with quick(tmp_path):
        for _ in range(2):
            training.run()
            with torch.no_grad():
                for batch in evaluation.loader:
                    evaluation.model(batch[0])
    written = read(tmp_path)
    assert len(written.numbers) == 2 * STEPS
    assert written.column("samples") == [BATCH] * 2 * STEPS
    assert [value > 0 for value in written.column("evaluation")].count(True) == 1


def test_evaluation_with_gradients_on_spoils_neither_samples_nor_facts(tmp_path: Path) -> None:
    """Its iterator has the id of the training's iterator, which was deleted."""
    training = Training()
    evaluation = DataLoader(Numbers(), batch_size=1)
    with quick(tmp_path):
        for _ in range(4):
            training.run()
            for batch in evaluation:
                training.model(batch[0])
    written = read(tmp_path)
    assert written.column("samples") == [BATCH] * 4 * STEPS
    assert [value > 0 for value in written.column("evaluation")].count(True) >= 3
    assert written.facts["batch_size"] == BATCH


def test_a_trace_with_the_unprofiled_step_time_beside_it(tmp_path: Path) -> None:
    import gzip
    import json

    with quick(tmp_path, captures=1):
        Training().run(epochs=6)
    (path,) = tmp_path.rglob("*.pt.trace.json.gz")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    context = json.loads(trace["tb_bottleneck"]) if isinstance(trace["tb_bottleneck"], str) else trace["tb_bottleneck"]
    assert context["context"]["unprofiled_step_ns"] > 0
    assert (trace["record_shapes"], trace["with_stack"]) == (1, 1)
    names = {event["name"] for event in trace["traceEvents"]}
    assert sum(name.startswith("ProfilerStep#") for name in names) == 6
    assert any(name.startswith("enumerate(DataLoader)") for name in names)
    written = read(tmp_path)
    assert {"capture_started", "capture_ended"} <= set(written.notes)
    assert sum(written.column("profiled")) >= 6
    assert not list(tmp_path.rglob("*.tmp")) + list(tmp_path.rglob("*.unpacked"))


def test_a_trace_on_request(tmp_path: Path) -> None:
    from tb_bottleneck.monitor.writer.run_directory import live_directories, request_capture

    training = Training()
    with quick(tmp_path):
        training.run()
        (directory,) = live_directories(tmp_path)
        assert request_capture(directory)
        for _ in range(2000):
            training.run()
            if list(directory.glob("*.pt.trace.json.gz")):
                break
    assert len(list(directory.glob("*.pt.trace.json.gz"))) == 1


@pytest.mark.parametrize("made_before", [True, False])
def test_the_trainings_own_profiler_goes_first(tmp_path: Path, made_before: bool) -> None:
    """Its schedule begins during our recording: ours is dropped, and the training's is complete.

    torch crashed with a segmentation fault while only profilers created after the monitor's start were detected.
    """
    training, events = Training(), []

    def theirs() -> torch.profiler.profile:
        return torch.profiler.profile(
            schedule=torch.profiler.schedule(skip_first=32, wait=0, warmup=1, active=2, repeat=1),
            on_trace_ready=lambda profiler: events.append(len(profiler.events())),
        )

    before = theirs()
    with quick(tmp_path, captures=1), before if made_before else theirs() as profiler:
        for _ in range(6):
            for batch in training.loader:
                training.step(batch)
                profiler.step()
    assert events
    assert events[0] > 0
    assert not list(tmp_path.rglob("*.pt.trace.json.gz"))
    assert "capture_dropped" in read(tmp_path).notes


def test_ours_comes_after_the_trainings_own(tmp_path: Path) -> None:
    training = Training()
    with quick(tmp_path, captures=1):
        with torch.profiler.profile():
            training.run(epochs=4)
        assert not list(tmp_path.rglob("*.unpacked"))
        training.run(epochs=5)
    assert len(list(tmp_path.rglob("*.pt.trace.json.gz"))) == 1
    assert sum(read(tmp_path).column("profiled")) >= 4 * STEPS + 6


def test_a_read_only_logdir_leaves_the_training_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING), quick(tmp_path / "file" / "logs") as monitor:
        assert torch.autograd.backward.__module__ == "torch.autograd"
        Training().run()
        monitor.step()
        monitor.capture()
    assert len(caplog.records) == 1
    assert "not monitored" in caplog.text


def test_a_url_is_refused_in_words_and_no_directory_is_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`s3://bucket/runs` became a local directory `s3:`."""
    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.chdir(tmp_path)
        with quick("s3://bucket/runs"):  # type: ignore[arg-type]
            Training().run()
    assert "not monitored" in caplog.text
    assert "needs a local directory" in caplog.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"every_s": "often"}, {"captures": "some"}])
def test_nonsense_is_said_and_the_training_goes_on(
    tmp_path: Path, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), quick(tmp_path, **options):
        Training().run()
    assert caplog.text.count("not monitored: ValueError") == 1


@pytest.mark.parametrize("every_s", [0.0, -1.0, math.nan, math.inf])
def test_packets_come_neither_all_the_time_nor_never(tmp_path: Path, every_s: float) -> None:
    """An interval of 0 seconds used a whole core."""
    with quick(tmp_path, every_s=every_s) as monitor:
        pump = monitor._session._writer  # type: ignore[union-attr]
        assert 0.05 <= pump._every_s <= 3600
        Training().run()
    assert len(read(tmp_path).numbers) == STEPS


def test_it_writes_where_it_began_when_the_training_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that changes its directory, as with Hydra, lost its traces."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with quick(Path("runs"), captures=1):
        monkeypatch.chdir(tmp_path / "elsewhere")
        Training().run(epochs=6)
    assert len(list((tmp_path / "runs").rglob("*.pt.trace.json.gz"))) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_never_came_is_missing_with_a_reason(tmp_path: Path) -> None:
    """A model called through another wrapper, gradients without a backward pass, no loader: each signal was missing
    without a reason."""
    weight, model = torch.nn.Parameter(torch.ones(3)), Training().model
    optimizer = torch.optim.SGD([weight])
    with quick(tmp_path, model=model):
        for _ in range(30):
            (weight.grad,) = torch.autograd.grad((weight**2).sum(), [weight])
            optimizer.step()
    written = read(tmp_path)
    assert len(written.numbers) == 30
    because = {one.name: one.because for one in written.contexts[-1].unsupported}
    assert "was not called" in because["forward"]
    assert "computed in another way" in because["backward"]
    assert "DataLoader" in because["loader_wait"]


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


def test_a_full_disk_loses_packets_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write, full = os.write, threading.Event()

    def limited(descriptor: int, data: bytes) -> int:
        if full.is_set() and threading.current_thread().name == "tb_bottleneck monitor":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", limited)
    training = Training()
    with quick(tmp_path) as monitor:
        for is_full in (False, True, False):
            (full.set if is_full else full.clear)()
            rows_then = len(read(tmp_path).numbers)
            for _ in range(3000):
                training.run()
                pump = monitor._session._writer  # type: ignore[union-attr]
                if (
                    any(one.code == "dropped" for one in pump._notes)
                    if is_full
                    else len(read(tmp_path).numbers) > rows_then
                ):
                    break
            else:
                pytest.fail("nothing happened")
    written = read(tmp_path)
    sequence = [packet.sequence for packet in written.packets]
    assert sequence != list(range(len(sequence))), "the lost packets are seen in the numbers"
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "No space left on device" in warning
    assert "dropped" in written.notes


class Broken:
    every_s = 0.01

    def __init__(self) -> None:
        self.reads = self.closed = 0

    def read(self) -> list[Reading]:
        self.reads += 1
        if self.reads > 2:
            raise RuntimeError("Driver/library version mismatch")
        return [Reading("power", 300.0, "GPU-1")]

    def missing(self) -> dict[str, str]:
        return {"energy_total": "the driver does not tell it"}

    def close(self) -> None:
        self.closed += 1


class Sound(Broken):
    def read(self) -> list[Reading]:
        return [Reading("temperature", 50.0, "GPU-1")]


def test_a_lost_driver_ends_its_sampler_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = Broken(), Sound()
    monkeypatch.setattr("tb_bottleneck.monitor.session._samplers", lambda: [broken, sound])
    training = Training()
    with quick(tmp_path):
        for _ in range(3000):
            training.run()
            if len(read(tmp_path).series("temperature")) > 5:
                break
    written = read(tmp_path)
    assert broken.reads == 3
    assert broken.closed
    assert written.series("power") == [300.0, 300.0]
    assert written.notes.count("signal_off") == 1
    unsupported = {one.name: one.because for one in written.contexts[-1].unsupported}
    assert unsupported["energy_total"] == "the driver does not tell it"
    assert unsupported["sampler Broken"] == "it failed with RuntimeError"


def test_samplers_that_cannot_even_be_made_are_gone_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> list[Any]:
        raise ImportError("No module named 'psutil'")

    monkeypatch.setattr("tb_bottleneck.monitor.session._samplers", absent)
    with quick(tmp_path):
        Training().run()
    assert len(read(tmp_path).numbers) == STEPS


def test_a_hook_that_fails_is_off_and_the_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> float:
        raise ValueError("what a strange batch")

    monkeypatch.setattr("tb_bottleneck.monitor.hooks.loader.batch_samples", fails)
    with quick(tmp_path):
        Training().run(epochs=2)
    written = read(tmp_path)
    assert written.notes.count("signal_off") == 1
    assert len(written.numbers) > STEPS, "steps are found without the loader"


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


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_exception_in_the_loop_is_the_users_own(tmp_path: Path, error: type[BaseException]) -> None:
    def interrupted() -> None:
        with quick(tmp_path):
            Training().run()
            raise error

    with pytest.raises(error):
        interrupted()
    assert read(tmp_path).numbers == list(range(STEPS))


def test_an_exception_in_the_data_set_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, index: int) -> None:
        raise OSError("bad sector")

    with quick(tmp_path):
        Training().run()
        monkeypatch.setattr(Numbers, "__getitem__", fails)
        with pytest.raises(OSError, match="bad sector"):
            Training().run()
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


@pytest.mark.slow
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


def test_importing_the_package_imports_neither_torch_nor_tensorboard() -> None:
    import subprocess
    import sys

    code = "import sys, tb_bottleneck; assert not {'torch', 'tensorboard'} & set(sys.modules); tb_bottleneck.Monitor"
    subprocess.run([sys.executable, "-c", code], check=True)
