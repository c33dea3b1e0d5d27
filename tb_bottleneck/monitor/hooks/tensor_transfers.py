"""Times calls that move a tensor between host and device, and counts calls that make the host wait for the device.

Copies and waits inside C++ are not visible, so the time and the count are lower bounds. According to torch 2.13's
documentation, these calls wait: a copy without `non_blocking`, reading a value (`item`, `tolist`, `bool`, `float`,
`int`), `nonzero`, and each `synchronize`. Methods of tensors count only for the types torch.Tensor and
torch.nn.Parameter, because attribute access on an instance of a subclass may run user code.
"""

import functools
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext

TRANSFER = "transfer"
SYNCS = "syncs"

_READS = ("item", "tolist", "nonzero", "__bool__", "__float__", "__int__")
_MOVES = ("to", "cuda", "cpu")


def install_transfer(context: HookContext) -> None:
    """Replaces the methods of Tensor that move a tensor between host and device, in order to time them."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    for name in _MOVES:
        context.patches.replace(torch.Tensor, name, functools.partial(_timed_move, context, plain))


def install_syncs(context: HookContext) -> None:
    """Replaces the methods of Tensor that read its values, and the calls that wait for a stream, in order to count
    them."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    context.clock.add(SYNCS, 0.0)  # from now on, a step without such a call has the count 0
    for name in _READS:
        context.patches.replace(torch.Tensor, name, functools.partial(_counted_read, context, plain))
    for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event):
        context.patches.replace(owner, "synchronize", functools.partial(_counted_wait, context))


def _timed_move(context: HookContext, plain: tuple[type, ...], original: Any) -> Any:
    @functools.wraps(original)
    def move(tensor: Any, *arguments: Any, **options: Any) -> Any:
        if type(tensor) not in plain or not context.is_active(TRANSFER):
            return original(tensor, *arguments, **options)
        began = context.clock.now()
        moved = original(tensor, *arguments, **options)
        # The class of `other` decides what `tensor.to(other)` returns. No Guard.call here: this runs at every call.
        try:
            is_transfer = type(moved) in plain and on_device(moved) != on_device(tensor)
        except Exception as error:
            context.guard.switch_off(TRANSFER, error)
            return moved
        if is_transfer:
            context.guard.call(TRANSFER, _add_transfer, context, began, arguments, options)
        return moved

    return move


def _add_transfer(context: HookContext, began: int, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    context.clock.add(TRANSFER, context.clock.now() - began)
    waits = not options.get("non_blocking", next((value for value in arguments if isinstance(value, bool)), False))
    if waits and context.guard.is_on(SYNCS):
        context.clock.add(SYNCS, 1)


def _counted_read(context: HookContext, plain: tuple[type, ...], original: Any) -> Any:
    @functools.wraps(original)
    def read(tensor: Any, *arguments: Any, **options: Any) -> Any:
        if type(tensor) in plain and on_device(tensor) and context.is_active(SYNCS):
            context.guard.call(SYNCS, context.clock.add, SYNCS, 1)
        return original(tensor, *arguments, **options)

    return read


def _counted_wait(context: HookContext, original: Any) -> Any:
    @functools.wraps(original)
    def synchronize(*arguments: Any, **options: Any) -> Any:
        if context.is_active(SYNCS):
            context.guard.call(SYNCS, context.clock.add, SYNCS, 1)
        return original(*arguments, **options)

    return synchronize


def on_device(tensor: Any) -> bool:
    """Returns True if a tensor is on an accelerator."""
    return bool(tensor.is_cuda or tensor.is_xpu)
