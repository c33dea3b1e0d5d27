"""Times the backward pass: `torch.autograd.backward`, which `Tensor.backward` ends in too."""

import functools
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext

SIGNAL = "backward"


def install(at: HookContext) -> None:
    """Replaces the function."""
    import torch

    at.patches.replace(torch.autograd, "backward", lambda original: _timed(at, original))


def _timed(at: HookContext, original: Any) -> Any:
    @functools.wraps(original)
    def backward(*arguments: Any, **options: Any) -> Any:
        # A backward pass within one (checkpointing) belongs to it.
        if at.clock.in_backward or not at.listens(SIGNAL):
            return original(*arguments, **options)
        began = at.guard.call(SIGNAL, at.clock.backward_begins)
        try:
            return original(*arguments, **options)
        finally:
            if began is not None:
                at.guard.call(SIGNAL, at.clock.backward_ends, began)

    return backward
