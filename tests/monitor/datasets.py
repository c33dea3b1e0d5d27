"""Small data sets for loaders: one that waits like storage, one that computes, some that fail. They are top-level, so
that spawned worker processes can import them."""

import time

import torch

SAMPLE_S = 0.008


class Waits(torch.utils.data.Dataset):
    """Each sample waits without using a core."""

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(SAMPLE_S)
        return torch.tensor([index])


class Computes(Waits):
    """Each sample uses a core for a while."""

    def __getitem__(self, index: int) -> torch.Tensor:
        end = time.thread_time() + SAMPLE_S
        while time.thread_time() < end:
            pass
        return torch.tensor([index])


class Counts(torch.utils.data.Dataset):
    """Seven samples without cost."""

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> int:
        return index


class Breaks(Counts):
    """A sample that cannot be read."""

    def __getitem__(self, index: int) -> int:
        raise ValueError(f"sample {index} is broken")


class Stream(torch.utils.data.IterableDataset):
    """Five samples, one after the other."""

    def __iter__(self):
        yield from range(5)


class Empty(Counts):
    """A data set without samples."""

    def __len__(self) -> int:
        return 0


def waits() -> Waits:
    return Waits()


def arguments() -> dict:
    return {"dataset": Computes(), "batch_size": 2, "shuffle": True, "num_workers": 1}


def breaks() -> Breaks:
    return Breaks()


def cannot_be_sent() -> dict:
    class Local(Counts):
        """A class local to this function."""

    return {"dataset": Local(), "multiprocessing_context": "spawn"}


def raises() -> None:
    raise KeyError("no such split")
