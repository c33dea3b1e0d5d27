"""Busy cores of this machine, and facts about thread pools, which contain no path of a library."""

import json

import psutil
import pytest
import threadpoolctl
from monitor.machine import values

from tb_bottleneck.monitor.samplers.cpu import Cores, thread_pool_facts


def test_this_machine_has_no_more_busy_cores_than_cores() -> None:
    sampler = Cores()
    values(sampler)
    for _ in range(1_000_000):
        pass
    found = values(sampler)
    assert 0 <= found.get("cpu_top_core", 0) <= 1
    assert found.get("cpu_busy_cores", 0) <= (psutil.cpu_count() or 1)


def test_pools_without_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = {
        "user_api": "blas",
        "internal_api": "openblas",
        "num_threads": 64,
        "filepath": "/home/somebody/lib/libopenblas.so",
        "version": "0.3.31",
        "prefix": "libopenblas",
    }
    openmp = {"user_api": "openmp", "internal_api": "openmp", "num_threads": 2, "filepath": "/x", "version": None}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [pool, openmp])
    assert thread_pool_facts()["blas_pools"] == [
        {"api": "blas", "library": "openblas", "threads": 64, "version": "0.3.31"},
        {"api": "openmp", "library": "openmp", "threads": 2, "version": "unknown"},
    ]


def test_numpy_and_torch_of_this_machine_tell_their_pools() -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("torch")
    found = thread_pool_facts()
    assert all(pool["threads"] >= 1 for pool in found["blas_pools"])
    assert "/" not in json.dumps(found)
