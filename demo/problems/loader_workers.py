"""A sweep: the training of `loader_in_main_process` with 0, 2, 4 and 8 workers, with or without pinned memory.

`tb-bottleneck compare` plots it as a curve and names the number of workers beyond which there is hardly any gain.
"""

from collections.abc import Callable

import torch

from demo.problems.loader_in_main_process import train_with


def train(setting: tuple[int, bool], steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps with (workers, pinned) and calls `on_step` after each."""
    train_with(*setting, steps, on_step, device)
