"""Snapshots are taken with a trace, at a new peak and when memory runs out; few, and never to the training's harm.

No GPU is used: the allocator is a fake that has torch's interface.
"""

import pytest
from helpers.simulated_allocator import SimulatedAllocator

from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot
from tb_bottleneck.monitor.capture import memory_snapshots
from tb_bottleneck.monitor.capture.memory_snapshots import HISTORY, MemorySnapshots
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.steps.row_queue import StepRow


class Fake:
    """An allocator of a simulated training."""

    def __init__(self, fails: bool = False) -> None:
        self.used, self.fails = False, fails
        self.history: list[int] = []
        self.out_of_memory = None
        self.taken = 0

    def ready(self):
        return self.used

    def record_history(self, entries):
        self.history.append(entries)

    def snapshot(self):
        if self.fails:
            raise RuntimeError("CUDA error")
        self.taken += 1
        return SimulatedAllocator(3, 0).snapshot()

    def on_out_of_memory(self, call):
        self.out_of_memory = call


class Training:
    """Steps with a peak of the memory each."""

    def __init__(self, folder, limit: int = 3, fails: bool = False) -> None:
        self.fake, self.guard, self.folder, self.number = Fake(fails), Guard(), folder, 0
        self.snapshots = MemorySnapshots(self.fake, lambda: folder, 0, self.guard, limit)

    def run(self, steps: int, peak: float = 0.0) -> list[str]:
        self.fake.used = True
        for _ in range(steps):
            self.number += 1
            figures = {"memory_allocated_peak": peak} if peak else {}
            self.snapshots.advance(StepRow(self.number, self.number, 1, figures))
        return self.reasons()

    def reasons(self) -> list[str]:
        return sorted(path.name.split(".")[-2] for path in self.folder.glob("*.pickle"))


def test_a_trace_and_a_new_peak_are_reasons(tmp_path):
    training = Training(tmp_path)
    assert training.run(30, 1e9) == ["peak"]
    assert training.run(30, 1.05e9) == ["peak"], "a little more is no new peak"
    training.snapshots.take("trace")
    assert training.run(1, 1.2e9) == ["peak", "peak", "trace"]
    assert training.run(30, 9e9) == ["peak", "peak", "trace"], "the limit is reached"
    assert training.fake.history == [HISTORY]


def test_peaks_of_the_warm_up_do_not_count(tmp_path):
    training = Training(tmp_path)
    assert training.run(memory_snapshots.WARM_UP_STEPS - 1, 1e9) == []


def test_running_out_of_memory_is_a_reason(tmp_path):
    training = Training(tmp_path)
    training.run(2)
    training.fake.out_of_memory()
    assert training.reasons() == ["oom"]


def test_nothing_is_touched_before_a_device_is_in_use(tmp_path):
    training = Training(tmp_path)
    training.snapshots.advance(StepRow(1, 1, 1))
    training.snapshots.take("trace")
    training.snapshots.finish()
    assert training.fake.history == []
    assert training.reasons() == []


def test_it_is_off_by_default(tmp_path):
    training = Training(tmp_path, limit=0)
    training.run(30, 1e9)
    training.snapshots.take("trace")
    assert (training.fake.history, training.reasons()) == ([], [])


def test_the_history_ends_with_the_monitor(tmp_path):
    training = Training(tmp_path)
    training.run(1)
    training.snapshots.finish()
    training.snapshots.take("trace")
    assert training.fake.history == [HISTORY, 0]
    assert training.reasons() == []


def test_a_failure_ends_the_snapshots_and_leaves_no_file(tmp_path):
    training = Training(tmp_path, fails=True)
    training.run(20, 1e9)
    assert list(tmp_path.iterdir()) == []
    assert not training.guard.is_on(memory_snapshots.SIGNAL)


def test_nothing_is_written_to_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_snapshots, "MIN_FREE_BYTES", 1 << 60)
    training = Training(tmp_path)
    assert training.run(20, 1e9) == []
    assert training.fake.taken == 0
    assert training.guard.is_on(memory_snapshots.SIGNAL)


def test_what_is_written_can_be_diagnosed(tmp_path):
    Training(tmp_path).run(20, 1e9)
    (path,) = tmp_path.glob("*.pickle")
    assert diagnose_snapshot(str(path)).memory.peak_bytes > 0


def test_torch_has_the_functions_that_are_called():
    torch = pytest.importorskip("torch")
    memory = torch.cuda.memory
    assert all(hasattr(memory, name) for name in ("_record_memory_history", "_snapshot"))
