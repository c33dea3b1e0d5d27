"""Times the forward pass of the model given to the monitor: `__call__` of its class.

A hook on the model itself would be pickled and copied with it (`torch.save(model)`, a moving average of it), so its
class gets a method while the monitor is on. A model that `compile()` compiled in place is not hooked, because the
method would be compiled too.
"""

import functools
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.torch_internals import is_compiled_in_place

SIGNAL = "forward"


def install(context: HookContext, model: Any) -> None:
    """Replaces the method. Raises ValueError if the model is compiled in place."""
    if is_compiled_in_place(model):
        raise ValueError("the model is compiled in place")
    context.patches.replace(type(model), "__call__", lambda original: _timed(context, model, original))


def _timed(context: HookContext, model: Any, original: Any) -> Any:
    inside = False

    @functools.wraps(original)
    def __call__(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal inside
        # A call within the backward pass (checkpointing) is part of that.
        if self is not model or inside or context.clock.in_backward or not context.is_active(SIGNAL):
            return original(self, *arguments, **options)
        inside = True
        began = context.clock.now()
        try:
            return original(self, *arguments, **options)
        finally:
            inside = False
            context.guard.call(SIGNAL, context.clock.add_time_since, SIGNAL, began)

    return __call__
