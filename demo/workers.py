"""A second process for the trainings that need one: this process is rank 0, and the other is spawned beside it."""
# mypy: allow-untyped-calls

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, multiprocessing

WORLD = 2
TO_MEET = timedelta(seconds=120)
SPAWN = multiprocessing.get_context("spawn")  # a forked process could not use a GPU


@contextmanager
def beside(work: Callable[..., None], *arguments: object, seconds_to_end: float = 60) -> Iterator[None]:
    """Runs `work(*arguments)`, a function of a module, in a second process while the body runs.

    After the body it may come to its own end for `seconds_to_end`; then, or where the body failed, it is ended.
    """
    process = SPAWN.Process(target=work, args=arguments, daemon=True)
    process.start()
    try:
        yield
        process.join(seconds_to_end)
    finally:
        process.terminate()
        process.join()


@contextmanager
def group(rank: int, folder: Path, backend: str) -> Iterator[None]:
    """A process group of two, which meet in a file of `folder`; each rank has the GPU of its number, if any.

    A DistributedDataParallel must be gone when this ends. One that holds the group's last reference joins its threads
    while it keeps the interpreter's lock, and gloo's need that lock to let go of a backward pass (torch 2.13 hung so).
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
    meeting = (folder / "meeting").as_uri()
    distributed.init_process_group(backend, init_method=meeting, rank=rank, world_size=WORLD, timeout=TO_MEET)
    try:
        yield
    finally:
        distributed.destroy_process_group()
