"""Which pairs mean something on this machine, and what is missing for the others."""

import shutil

from demo.pairs import COMPILER, CPU, GPU, TWO_GPUS, Pair


def missing_for(pair: Pair, gpus: int) -> str:
    """What this machine lacks for the pair, in words; empty where it lacks nothing. `gpus` is how many there are."""
    has = {
        CPU: True,
        COMPILER: gpus > 0 or any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
        GPU: gpus > 0,
        TWO_GPUS: gpus > 1,
    }
    return "" if has[pair.needs] else pair.needs


def count_gpus() -> int:
    """GPUs that torch can use here. Raises ImportError where there is no torch."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
