"""A data set with items that cost CPU time."""

import time

import torch


class Busy(torch.utils.data.Dataset):
    """Forty items, each about 20 ms of a core."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> float:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return float(index)
