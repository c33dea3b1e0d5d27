"""One rank of a small training with Gloo: `live_program.py FAULT LOGDIR`. Rank 1 has the fault, from step 100 on."""

import gc
import os
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from tb_bottleneck import Monitor

FAULT, LOGDIR = sys.argv[1:]
STEPS = int(os.environ.get("LIVE_STEPS", "250" if FAULT == "healthy" else "1000000"))
RANK = int(os.environ["RANK"])
FAULTY = RANK == 1
FROM = 100


class Samples(Dataset):
    def __len__(self) -> int:
        return STEPS * 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if FAULT == "slow_data" and FAULTY:
            time.sleep(0.005)
        return torch.ones(64)


def evaluate(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for _ in range(40):
            model.module(torch.ones(8, 64))
            time.sleep(0.01)


def busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(1000))


def before_forward(step: int) -> None:
    """The faults that come before the forward pass."""
    if FAULT == "healthy" and step == 0:
        time.sleep(3)
    if FAULT == "exception_once" and step == FROM and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
        raise ValueError("a batch is broken")
    if not FAULTY or step < FROM:
        return
    if FAULT == "hang" and step == FROM:
        time.sleep(1_000)
    if FAULT == "exception" and step == FROM:
        raise ValueError("a sample is broken")
    if FAULT == "slow_host":
        busy(0.02)
    if FAULT == "interruption" and step % 50 == 0:
        torch.save({"state": torch.ones(1)}, os.path.join(LOGDIR, "checkpoint.pt"))
        busy(0.5)


def main() -> None:
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT")
    # After a restart, torchrun's store still has the addresses of the processes before, and Gloo may read those.
    store = None if restart is None else f"file://{LOGDIR}/store{restart}"
    torch.distributed.init_process_group("gloo", store, rank=RANK, world_size=int(os.environ["WORLD_SIZE"]))
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 8)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    gc.collect()
    monitored = not (FAULT == "without_monitor" and FAULTY)
    with Monitor(LOGDIR, captures=0) if monitored else open(os.devnull):
        for step, batch in enumerate(DataLoader(Samples(), 8)):
            before_forward(step)
            loss = model(batch).sum()
            optimizer.zero_grad()
            loss.backward()
            if FAULT == "before_collective" and FAULTY and step == FROM:
                time.sleep(1_000)
            if FAULT in ("before_collective", "mismatch") and step % 10 == 0:
                average(loss, step)
            optimizer.step()
            time.sleep(0.01)
            if FAULT == "healthy" and step % 200 == 199 and RANK == 0:
                evaluate(model)


def average(loss: torch.Tensor, step: int) -> None:
    """Averages a metric over the ranks. In the mismatch, one rank gathers instead."""
    if FAULT == "mismatch" and FAULTY and step >= FROM:
        torch.distributed.barrier(torch.distributed.new_group([0, 1]))
    else:
        torch.distributed.all_reduce(loss.detach())


if __name__ == "__main__":
    main()
