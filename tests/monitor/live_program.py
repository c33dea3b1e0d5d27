"""One rank of a small training with Gloo: `live_program.py FAULT LOGDIR`. Rank 1 has the fault."""

import os
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from tb_bottleneck import Monitor

FAULT, LOGDIR = sys.argv[1:]
STEPS = 400 if FAULT == "healthy" else 100_000
FAULTY = int(os.environ["RANK"]) == 1


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


def main() -> None:
    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 8)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with Monitor(LOGDIR, captures=0):
        for step, batch in enumerate(DataLoader(Samples(), 8)):
            if FAULT == "healthy" and step == 0:
                time.sleep(3)
            if FAULT == "hang" and FAULTY and step == 100:
                time.sleep(1_000)
            if FAULT == "exception" and FAULTY and step == 100:
                raise ValueError("a sample is broken")
            loss = model(batch).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.01)
            if FAULT == "healthy" and step % 200 == 199 and not FAULTY:
                evaluate(model)


if __name__ == "__main__":
    main()
