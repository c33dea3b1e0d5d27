"""The allocator's counters between two readings, without initialising a device."""

from types import SimpleNamespace

import pytest
import torch

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.accelerator import READ_EVERY_NS, AllocatorCounters


def test_differences_from_look_to_look_and_no_more_than_one_a_second() -> None:
    counts = {"num_device_alloc": 5, "num_device_free": 0, "num_alloc_retries": 0}
    asked = []

    def result() -> dict[str, int]:
        asked.append(1)
        return dict(counts)

    allocator = AllocatorCounters(result)
    assert allocator.read(0) == {}, "what came before the first look belongs to no step"
    counts["num_device_alloc"] = 9
    counts["num_alloc_retries"] = 1
    assert allocator.read(READ_EVERY_NS - 1) == {}
    assert allocator.read(READ_EVERY_NS) == {"device_allocations": 4, "device_frees": 0, "allocation_retries": 1}
    assert allocator.read(3 * READ_EVERY_NS) == {"device_allocations": 0, "device_frees": 0, "allocation_retries": 0}
    assert len(asked) == 3


def test_an_allocator_that_does_not_count_says_nothing() -> None:
    allocator = AllocatorCounters(dict)
    assert [allocator.read(moment * READ_EVERY_NS) for moment in range(3)] == [{}, {}, {}]


def test_a_device_that_is_not_in_use_is_not_begun_with() -> None:
    assert accelerator.new_event() is None
    assert not accelerator.is_capturing()
    assert accelerator.allocator_counts() == {}
    assert not torch.cuda.is_initialized()


def test_looking_for_one_does_not_ask_cuda_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """`is_available` initialises the driver, and processes forked afterwards cannot use a GPU: a monitored training
    that forks its ranks failed."""

    def asked() -> bool:
        raise AssertionError("CUDA was asked")

    monkeypatch.setattr(torch.cuda, "is_available", asked)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert accelerator.is_available()


@pytest.mark.parametrize(("held", "own"), [([0, 5, 900, 0], 2), ([7, 900], 1), ([0, 0], 0), ([12], 0)])
def test_the_gpu_of_this_process_is_the_one_that_holds_its_memory(held: list[int], own: int) -> None:
    """In every rank, the current device of the monitor's thread was GPU 0, because it is a property of the thread. A
    little memory on another GPU is left over from loading."""
    cuda = SimpleNamespace(device_count=lambda: len(held), memory_reserved=held.__getitem__, current_device=lambda: 0)
    assert accelerator.own_gpu(SimpleNamespace(cuda=cuda)) == own


def test_the_bytes_of_the_allocator_are_read_as_they_are() -> None:
    def result() -> dict[str, object]:
        return {
            "allocated_bytes": {"all": {"current": 7, "peak": 9}},
            "reserved_bytes": {"all": {"current": 20, "peak": 20}},
        }

    read = {"memory_allocated": 7.0, "memory_allocated_peak": 9.0, "memory_reserved": 20.0}
    assert AllocatorCounters(result).read(0) == read
