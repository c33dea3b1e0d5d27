"""The requirements of pairs that this machine does not meet."""

import shutil

from demo.pairs import COMPILER, CPU, GPU, TWO_GPUS, Pair


def missing_for(pair: Pair, gpus: int) -> str:
    """Returns the pair's requirement as text if this machine does not meet it, else "". `gpus` is the GPU count."""
    available = {
        CPU: True,
        COMPILER: gpus > 0 or any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")),
        GPU: gpus > 0,
        TWO_GPUS: gpus > 1,
    }
    return "" if available[pair.needs] else pair.needs


def count_gpus() -> int:
    """Returns the number of GPUs that torch can use. Raises ImportError if torch is not installed."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
