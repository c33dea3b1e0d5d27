"""Data-parallel trainings of two processes over gloo."""

import time
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES = 4


def load(rank: int, slow: bool, step: int) -> Tensor:
    """Returns a batch; on the second rank a pause simulates a slower disk."""
    if slow and rank == 1:
        time.sleep(0.03)  # planted: ddp/straggler
    return torch.full((64, 512), step % 7 / 7)


def reduce_by_hand(model: nn.Module) -> None:
    """Averages the gradients, one tensor at a time."""
    for parameter in model.parameters():
        distributed.all_reduce(parameter.grad)  # planted: ddp/reduce_by_hand
        parameter.grad /= 2


def stack(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a stack of layers on two ranks."""
    bad, rank = "" if fixed else problem, distributed.get_rank()
    torch.manual_seed(0)
    width, layers = (128, 60) if problem in ("small_buckets", "reduce_by_hand") else (512, 6)
    model = nn.Sequential(nn.Linear(512, width), *(nn.Linear(width, width) for _ in range(layers)))
    bucket = 0.01 if bad == "small_buckets" else 25  # planted: ddp/small_buckets
    parallel = model if bad == "reduce_by_hand" else DistributedDataParallel(model, bucket_cap_mb=bucket)
    micro_batches = MICRO_BATCHES if problem == "synced_micro_batches" else 1
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        batch = load(rank, bad == "straggler", step)
        optimizer.zero_grad()
        for number, part in enumerate(batch.chunk(micro_batches), 1):
            quiet = micro_batches > number and fixed
            with parallel.no_sync() if quiet else nullcontext():
                parallel(part).square().mean().backward()  # planted: ddp/synced_micro_batches
        if bad == "reduce_by_hand":
            reduce_by_hand(model)
        optimizer.step()
        on_step()
    del parallel
