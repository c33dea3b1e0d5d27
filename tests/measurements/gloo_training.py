"""One rank of a small real training with Gloo, run by torchrun: `gloo_training.py CAUSE planted|fixed FOLDER`.

Compute, loading and saving sleep, so that many ranks fit on few cores. Each rank writes a trace of nine steps, and rank
0 the mean time of later steps without a profiler.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

STEPS, PROFILED_UNTIL = 34, 16
COMPUTE_SECONDS = 0.02
SLOW_RANK, LOADER_RANK, SAVING_RANK = 2, 1, 0


@torch.library.custom_op("job::compute", mutates_args=())
def compute(batch: torch.Tensor) -> torch.Tensor:
    """Takes 20 ms for 1000 rows."""
    time.sleep(batch.shape[0] / 1000 * COMPUTE_SECONDS)
    return batch.clone()


class Samples(torch.utils.data.Dataset[torch.Tensor]):
    """Samples that take `seconds` to load."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if self._seconds:
            time.sleep(self._seconds)
        return torch.randn(64)


class Slow:
    """An object that takes 80 ms to save."""

    def __reduce__(self):
        time.sleep(0.08)
        return int, ()


def main() -> None:
    """Trains."""
    cause, planted, folder = sys.argv[1], sys.argv[2] == "planted", Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    slow_loader = planted and cause == "rank_input" and rank == LOADER_RANK
    loader = iter(torch.utils.data.DataLoader(Samples(0.0015 if slow_loader else 0.0), batch_size=20))
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer, sizes, times = torch.optim.SGD(model.parameters(), 0.1), random.Random(7), []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(skip_first=3, wait=1, warmup=1, active=9, repeat=1),
        record_shapes=True,
        with_stack=True,
        on_trace_ready=tensorboard_trace_handler(str(folder), use_gzip=True),
    ) as profiler:
        for step in range(STEPS):
            begin = time.perf_counter()
            next(loader)
            drawn = [sizes.uniform(0.4, 1.6) for _ in range(ranks)]
            uneven = cause == "data_imbalance" and planted
            size = drawn[rank] if uneven else sum(drawn) / ranks if cause == "data_imbalance" else 1.0
            batch = compute(torch.randn(int(1000 * size), 64))
            if cause == "slow_rank" and planted and rank == SLOW_RANK:
                time.sleep(0.03)
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            if cause == "rank_interruption" and planted and rank == SAVING_RANK and step % 3 == 0:
                torch.save({"state": Slow()}, folder / "checkpoint.pt")
            profiler.step()
            if step >= PROFILED_UNTIL:
                times.append(time.perf_counter() - begin)
    if rank == 0:
        (folder / "unprofiled.json").write_text(json.dumps(sum(times) / len(times)))
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # about one rank in 50 aborts in torch's threads if the interpreter is taken down


if __name__ == "__main__":
    main()
