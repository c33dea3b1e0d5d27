"""What the allocator counted between two looks, and that no device is begun with."""

import torch

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.accelerator import ASK_EVERY_NS, Allocator


def test_differences_from_look_to_look_and_no_more_than_one_a_second() -> None:
    counts = {"num_device_alloc": 5, "num_device_free": 0, "num_alloc_retries": 0}
    asked = []

    def told() -> dict[str, int]:
        asked.append(1)
        return dict(counts)

    allocator = Allocator(told)
    assert allocator.look(0) == {}, "what came before the first look belongs to no step"
    counts["num_device_alloc"] = 9
    counts["num_alloc_retries"] = 1
    assert allocator.look(ASK_EVERY_NS - 1) == {}
    assert allocator.look(ASK_EVERY_NS) == {"device_allocations": 4, "device_frees": 0, "allocation_retries": 1}
    assert allocator.look(3 * ASK_EVERY_NS) == {"device_allocations": 0, "device_frees": 0, "allocation_retries": 0}
    assert len(asked) == 3


def test_an_allocator_that_does_not_count_says_nothing() -> None:
    allocator = Allocator(dict)
    assert [allocator.look(moment * ASK_EVERY_NS) for moment in range(3)] == [{}, {}, {}]


def test_a_device_that_is_not_in_use_is_not_begun_with() -> None:
    assert accelerator.new_event() is None
    assert not accelerator.is_capturing()
    assert accelerator.allocator_counts() == {}
    assert not torch.cuda.is_initialized()
