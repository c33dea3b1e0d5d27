"""Times the forward pass of the model, which is `__call__` of the model's class.

The method of the class is replaced while the monitor is on. A hook on the model itself would be pickled and copied with
the model (`torch.save(model)`, a moving average of the model). A model that `compile()` compiled in place is not timed,
because the new method would be compiled, too.
"""

import functools
from typing import Any

from tb_bottleneck.monitor.facts.model import classes_to_time
from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.torch_internals import is_compiled_in_place

SIGNAL = "forward"
NO_MODEL = "no module with the parameters of the optimizer was found: pass the model, Monitor(logdir, model=model)"


def install(context: HookContext, model: Any) -> None:
    """Times the calls of `model`, but not of other models of its class. Raises ValueError if the model is compiled in
    place."""
    if is_compiled_in_place(model):
        raise ValueError("the model is compiled in place")
    context.patches.replace(type(model), "__call__", lambda original: _Forward(context, model).timed(original))


class FoundModels:
    """Finds and times the models if the user passed no model. `add` is called after the first step of each
    optimizer."""

    def __init__(self, context: HookContext) -> None:
        self._context = context
        self._forward = _Forward(context)
        self._classes: list[type] = []
        self.missing = NO_MODEL
        """The reason why no forward pass is timed; empty if forward passes are timed."""

    def add(self, optimizer: Any) -> None:
        """Times the models that own the parameters of `optimizer`. If none is found, no forward pass is timed any more,
        because the times would be incomplete."""
        classes = classes_to_time(optimizer) if self._forward.is_on else []
        if not classes:
            self._forward.is_on = False
            self._context.clock.known.pop(SIGNAL, None)
            self.missing = NO_MODEL
            return
        for kind in classes:
            if kind not in self._classes:
                self._classes.append(kind)
                self._context.patches.replace(kind, "__call__", self._forward.timed)
        self.missing = ""


class _Forward:
    """Times the outermost calls of `model`. If `model` is None, times the outermost calls of all instances of the
    classes whose `__call__` was replaced by the result of `timed`."""

    def __init__(self, context: HookContext, model: Any = None) -> None:
        self._context = context
        self._model = model
        self._inside = False
        self.is_on = True

    def timed(self, original: Any) -> Any:
        """Returns a `__call__` that runs `original` and adds its time to the step."""
        context = self._context
        from torch import is_grad_enabled as gradients_on

        @functools.wraps(original)
        def __call__(module: Any, *arguments: Any, **options: Any) -> Any:
            # A call within the backward pass (checkpointing) is part of the backward pass.
            other = self._inside or (self._model is not None and self._model is not module)
            if other or not self.is_on or context.clock.in_backward or not context.is_active(SIGNAL):
                return original(module, *arguments, **options)
            self._inside = True
            began = context.clock.now()
            try:
                return original(module, *arguments, **options)
            finally:
                self._inside = False
                for_training = module.training or gradients_on()
                context.guard.call(SIGNAL, context.clock.forward_ends, SIGNAL, began, for_training)

        return __call__
