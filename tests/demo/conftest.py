"""Trainings of the demo run on one thread each.

Threads of OpenMP wait for each other after each operation. Where other stages of the tests use the cores too, each of
these waits is for a free core, and a training takes several times as long.
"""

import importlib.util
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Sets the number of threads of this process, if it trains, and of the processes that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        if importlib.util.find_spec("torch") is None:
            yield
            return
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(threads)
