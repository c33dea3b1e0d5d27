"""Times the backward pass: `torch.autograd.backward`, which `Tensor.backward` calls too."""

import functools
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext

SIGNAL = "backward"


def install(context: HookContext) -> None:
    """Replaces `torch.autograd.backward` by a function that also times the call."""
    import torch

    context.patches.replace(torch.autograd, "backward", lambda original: _timed(context, original))


def _timed(context: HookContext, original: Any) -> Any:
    @functools.wraps(original)
    def backward(*arguments: Any, **options: Any) -> Any:
        # A nested backward pass (checkpointing) is part of the outer one.
        if context.clock.in_backward or not context.is_active(SIGNAL):
            return original(*arguments, **options)
        began = context.guard.call(SIGNAL, context.clock.backward_begins)
        try:
            return original(*arguments, **options)
        finally:
            if began is not None:
                context.guard.call(SIGNAL, context.clock.backward_ends, began)

    return backward
