"""Detects optimizer steps with torch's own hooks for all optimizers.

A step compiled by `torch.compile` runs without hooks: such a loop must call `monitor.step()`.
"""

from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.facts.model import MAX_OBJECTS
from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.torch_internals import is_python_thread

SIGNAL = "optimizer"


def install(context: HookContext) -> Callable[[], None]:
    """Registers the hooks. Returns a function that removes them."""
    from torch.optim import optimizer as module

    known_ids: set[int] = set()

    # torch.compile traces the hooks of an optimizer that it compiles, and must find no monitor code in them.
    def before(optimizer: Any, _arguments: Any, _options: Any) -> None:
        if not context.compiling() and _is_active(context):
            context.guard.call(SIGNAL, context.clock.optimizer_begins, id(optimizer))

    def after(optimizer: Any, _arguments: Any, _options: Any) -> None:
        if not context.compiling() and _is_active(context):
            context.guard.call(SIGNAL, _stepped, context, optimizer, known_ids)

    handles = [module.register_optimizer_step_pre_hook(before), module.register_optimizer_step_post_hook(after)]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def _is_active(context: HookContext) -> bool:
    if not context.patches.live or not context.guard.is_on(SIGNAL):
        return False
    # An optimizer that steps inside the backward pass runs on autograd's own thread while the training thread waits.
    # Any other thread that trains something at that moment was started by Python.
    return context.clock.is_training_thread() or (context.clock.in_backward and not is_python_thread())


def _stepped(context: HookContext, optimizer: Any, known_ids: set[int]) -> None:
    if id(optimizer) not in known_ids and len(known_ids) < MAX_OBJECTS:
        known_ids.add(id(optimizer))
        context.add_facts("optimizer", optimizer)
    # Before the next call of the clock, which may end the step at once.
    context.spans.end()
    context.clock.optimizer_ends(id(optimizer))
