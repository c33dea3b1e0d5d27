"""Times the forward pass of a model that the monitor was told of: `__call__` of its class.

A hook on the model itself would be pickled and copied with it (`torch.save(model)`, a moving average of it), so its
class gets a method for as long as the monitor is on. A model that `compile()` compiled in place is left alone: there
the method would become part of what is compiled.
"""

import functools
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext

SIGNAL = "forward"


def install(at: HookContext, model: Any) -> None:
    """Replaces the method. Raises ValueError where the model must be left alone."""
    if getattr(model, "_compiled_call_impl", None) is not None:
        raise ValueError("the model is compiled in place")
    at.patches.replace(type(model), "__call__", lambda original: _timed(at, model, original))


def _timed(at: HookContext, model: Any, original: Any) -> Any:
    inside = False

    @functools.wraps(original)
    def __call__(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal inside
        # A call within the backward pass (checkpointing) is part of that.
        if self is not model or inside or at.clock.in_backward or not at.listens(SIGNAL):
            return original(self, *arguments, **options)
        inside = True
        began = at.clock.now()
        try:
            return original(self, *arguments, **options)
        finally:
            inside = False
            at.guard.call(SIGNAL, at.clock.spent, SIGNAL, began)

    return __call__
