"""Memory in use is the memory that is not available to programs."""

from types import SimpleNamespace

import pytest
from monitor.samplers.machine import values

from tb_bottleneck.monitor.samplers.host_memory import HostMemory


def test_caches_that_would_give_way_are_not_in_use() -> None:
    sampler = HostMemory(lambda: SimpleNamespace(total=100, available=70, used=90))
    assert values(sampler) == pytest.approx({"host_memory_used": 0.3})
