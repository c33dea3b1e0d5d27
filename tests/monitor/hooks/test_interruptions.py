"""Checkpoints, log writes and collections are timed, and torch is left as it was."""

import gc
import math
import sys
import time
import types
from pathlib import Path
from statistics import median

import pytest
import torch
from monitor.training import Training
from monitor.written import read

from tb_bottleneck import Monitor

SLEEP_S = 0.02
CALLS_NS: list[int] = []


def columns(folder: Path, *names: str) -> dict[str, list[float]]:
    written = read(folder)
    return {name: written.column(name) for name in names}


def test_a_checkpoint_counts_in_the_step_that_it_lengthens_only(tmp_path: Path) -> None:
    training, original = Training(), torch.save
    with Monitor(tmp_path, captures=0, every_s=0.1):
        for number, batch in enumerate(training.loader):
            training.step(batch)
            if number == 4:
                torch.save(training.model.state_dict(), tmp_path / "model.pt")
    assert torch.save is original
    found = columns(tmp_path, "checkpoint", "logging")
    saved = [number for number, value in enumerate(found["checkpoint"]) if value > 0]
    assert saved == [5], "it follows the end of step 4's update"
    assert set(found["logging"]) == {0.0}, "no writer was used, and that is known"


def test_a_writer_that_the_program_imports_later_is_timed(tmp_path: Path) -> None:
    training = Training()
    with Monitor(tmp_path / "runs", captures=0, every_s=0.1):
        from torch.utils.tensorboard import SummaryWriter

        add_scalar = SummaryWriter.add_scalar
        with SummaryWriter(tmp_path / "logs") as writer:
            for number, batch in enumerate(training.loader):
                training.step(batch)
                writer.add_scalar("loss", float(number), number)
    assert SummaryWriter.add_scalar is add_scalar
    logging = columns(tmp_path / "runs", "logging")["logging"]
    assert sum(value > 0 for value in logging) >= len(logging) - 3


def test_a_collection_is_timed_but_not_within_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training, callbacks = Training(), list(gc.callbacks)
    monkeypatch.setattr(torch, "save", lambda *_: gc.collect())
    gc.disable()
    try:
        with Monitor(tmp_path, captures=0, every_s=0.1):
            for number, batch in enumerate(training.loader):
                training.step(batch)
                if number == 3:
                    gc.collect()
                if number == 6:
                    torch.save({}, "x")
    finally:
        gc.enable()
    assert gc.callbacks == callbacks
    found = columns(tmp_path, "garbage_collection", "checkpoint")
    assert [number for number, value in enumerate(found["garbage_collection"]) if value > 0] == [4]
    assert [number for number, value in enumerate(found["checkpoint"]) if value > 0] == [7]


def test_the_first_batch_of_each_epoch_is_marked_with_its_wait(tmp_path: Path) -> None:
    training = Training()
    with Monitor(tmp_path, captures=0, every_s=0.1):
        training.run(epochs=3)
    found = columns(tmp_path, "epoch_start", "loader_wait")
    begins = [number for number, value in enumerate(found["epoch_start"]) if value > 0]
    assert begins == [0, 10, 20]
    assert all(found["epoch_start"][number] <= 1.5 * found["loader_wait"][number] + 1e6 for number in begins[1:])


def test_a_thread_that_sleeps_uses_no_cpu_time(tmp_path: Path) -> None:
    training = Training()
    with Monitor(tmp_path, captures=0, every_s=0.1):
        for batch in training.loader:
            training.step(batch)
            time.sleep(SLEEP_S)
    written = read(tmp_path)
    walls = [wall for packet in written.packets for wall in packet.steps.wall_ns]
    used = written.column("thread_cpu")
    assert math.isnan(used[0])
    assert all(wall - cpu > 0.9 * SLEEP_S * 1e9 for wall, cpu in zip(walls[1:-1], used[1:-1], strict=True))


def log_for_a_while() -> None:
    begin = time.perf_counter_ns()
    time.sleep(SLEEP_S)
    CALLS_NS.append(time.perf_counter_ns() - begin)


class Run:
    """W&B's run: `log` is timed also if the program holds a bound method of it."""

    def log(self, values: dict[str, float]) -> str:
        log_for_a_while()
        return "logged"


@pytest.mark.parametrize("package", ["wandb", "mlflow"])
def test_loggers_of_experiments_are_timed_if_the_program_imports_them(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, runs = types.ModuleType(package), types.ModuleType("wandb.sdk.wandb_run")
    module.log_metric = lambda name, value, step: log_for_a_while()
    runs.Run = type("Run", (Run,), {"log": Run.log})
    module.log = runs.Run().log
    monkeypatch.setitem(sys.modules, package, module)
    monkeypatch.setitem(sys.modules, "wandb.sdk.wandb_run", runs)
    CALLS_NS.clear()
    originals = (module.log, module.log_metric, runs.Run.log)
    training = Training()
    with Monitor(tmp_path, captures=0, every_s=0.1):
        for number, batch in enumerate(training.loader):
            training.step(batch)
            if package == "wandb":
                assert (module.log if number % 2 else runs.Run().log)({"loss": 1.0}) == "logged"
            else:
                module.log_metric("loss", 1.0, number)
    assert (module.log, module.log_metric, runs.Run.log) == originals
    logging = columns(tmp_path, "logging")["logging"]
    # The medians are compared with the calls as they were: a busy machine makes a single sleep several times as long.
    assert median(CALLS_NS) / 1.5 < median(logging) < 1.5 * median(CALLS_NS), "each call is counted once"
