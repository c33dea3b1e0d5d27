"""What fails costs data of the monitor and never the training: disks, drivers, hooks, wrong arguments."""

import errno
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor.quick_monitor import quick
from monitor.training import STEPS, Numbers, Training
from monitor.written import read

from tb_bottleneck.monitor.samplers.sampler import Reading

pytestmark = pytest.mark.usefixtures("torch_is_left_as_it_was")


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
