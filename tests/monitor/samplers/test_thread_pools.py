"""Facts about thread pools contain no path of a library."""

import json

import pytest
import threadpoolctl

from tb_bottleneck.monitor.samplers.cpu import thread_pool_facts


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
