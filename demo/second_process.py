"""Starts the second rank of trainings that need two processes; this process is rank 0."""
# mypy: allow-untyped-calls

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, multiprocessing

WORLD = 2
RENDEZVOUS_TIMEOUT = timedelta(seconds=120)
SPAWN = multiprocessing.get_context("spawn")  # a forked process could not use a GPU


@contextmanager
def second_process(work: Callable[..., None], *arguments: object, seconds_to_end: float = 60) -> Iterator[None]:
    """Runs `work(*arguments)`, a module-level function, in a second process while the body runs.

    After the body, waits up to `seconds_to_end` for the process to end, then terminates it. If the body fails, the
    process is terminated at once.
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
def process_group(rank: int, folder: Path, backend: str) -> Iterator[None]:
    """Opens a process group of two ranks, which rendezvous in a file in `folder`. Each rank uses the GPU of its number.

    Every DistributedDataParallel must be deleted before this ends. If one holds the group's last reference, it joins
    the group's threads while it holds the GIL, and gloo's threads need the GIL to release a backward pass (torch 2.13
    hung here).
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
    rendezvous = (folder / "rendezvous").as_uri()
    distributed.init_process_group(
        backend, init_method=rendezvous, rank=rank, world_size=WORLD, timeout=RENDEZVOUS_TIMEOUT
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()
