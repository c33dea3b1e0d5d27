"""Times calls that move a tensor between host and device, and counts those that make the host wait for the device.

Seen is what Python calls: copies and waits inside C++ are not, so both are lower bounds. Which torch calls wait, as
torch 2.13 documents it: a copy without `non_blocking`, reading a value (`item`, `tolist`, `bool`, `float`, `int`),
`nonzero`, and each `synchronize`. Only plain tensors are looked at: a subclass may answer questions about itself with
code of its own.
"""

import functools
from typing import Any

from tb_bottleneck.monitor.hooks.hook_context import HookContext

TRANSFER = "transfer"
SYNCS = "syncs"

_READS = ("item", "tolist", "nonzero", "__bool__", "__float__", "__int__")
_MOVES = ("to", "cuda", "cpu")


def install_transfer(at: HookContext) -> None:
    """Replaces the methods of Tensor that move it."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    for name in _MOVES:
        at.patches.replace(torch.Tensor, name, functools.partial(_timed_move, at, plain))


def install_syncs(at: HookContext) -> None:
    """Replaces the methods of Tensor that read its values, and the calls that wait for a stream."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    at.clock.add(SYNCS, 0.0)  # from now on no call is a count too
    for name in _READS:
        at.patches.replace(torch.Tensor, name, functools.partial(_counted_read, at, plain))
    for owner in (torch.cuda, torch.cuda.Stream, torch.cuda.Event):
        at.patches.replace(owner, "synchronize", functools.partial(_counted_wait, at))


def _timed_move(at: HookContext, plain: tuple[type, ...], original: Any) -> Any:
    @functools.wraps(original)
    def move(tensor: Any, *arguments: Any, **options: Any) -> Any:
        if type(tensor) not in plain or not at.listens(TRANSFER):
            return original(tensor, *arguments, **options)
        began = at.clock.now()
        moved = original(tensor, *arguments, **options)
        if on_device(moved) != on_device(tensor):
            at.guard.call(TRANSFER, _moved, at, began, arguments, options)
        return moved

    return move


def _moved(at: HookContext, began: int, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    at.clock.add(TRANSFER, at.clock.now() - began)
    waits = not options.get("non_blocking", next((one for one in arguments if isinstance(one, bool)), False))
    if waits and at.guard.is_on(SYNCS):
        at.clock.add(SYNCS, 1)


def _counted_read(at: HookContext, plain: tuple[type, ...], original: Any) -> Any:
    @functools.wraps(original)
    def read(tensor: Any, *arguments: Any, **options: Any) -> Any:
        if type(tensor) in plain and on_device(tensor) and at.listens(SYNCS):
            at.guard.call(SYNCS, at.clock.add, SYNCS, 1)
        return original(tensor, *arguments, **options)

    return read


def _counted_wait(at: HookContext, original: Any) -> Any:
    @functools.wraps(original)
    def synchronize(*arguments: Any, **options: Any) -> Any:
        if at.listens(SYNCS):
            at.guard.call(SYNCS, at.clock.add, SYNCS, 1)
        return original(*arguments, **options)

    return synchronize


def on_device(tensor: Any) -> bool:
    """Whether a tensor lies on an accelerator."""
    return bool(tensor.is_cuda or tensor.is_xpu)
