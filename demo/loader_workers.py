"""A sweep: the training of `loader_in_main_process` with 0, 2, 4 and 8 workers, its batches in pinned memory or not.

`tb-bottleneck compare` draws it as a curve and names its knee: from where on more workers bring next to nothing.
"""

from collections.abc import Callable

import torch

from demo.loader_in_main_process import train_with


def train(setting: tuple[int, bool], steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Train for `steps` steps with (workers, pinned) and call `on_step` after each."""
    train_with(*setting, steps, on_step, device)
