"""Applies settings in the process of a training: replaces functions of torch before the script starts.

The settings override values that the script itself sets. A function that applies a setting gets the value of the
setting as text, or, for DataLoader and optimizers, keyword arguments. `unused` shows the settings without effect so
far.
"""

import gc
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from tb_bottleneck.base.errors import Unusable

ONLY_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context")
"""Arguments that DataLoader refuses without workers."""

unused: dict[object, str] = {}
"""For each setting that had no effect so far in this process: the reason, as a clause. Keys are arbitrary objects."""


def _until_used(because: str) -> Callable[[], object]:
    """Adds the reason `because` to `unused`. Returns a function that removes it; call this function when the setting is
    used."""
    key = object()
    unused[key] = because
    return lambda: unused.pop(key, None)


def loader(**arguments: Any) -> None:
    """Makes each DataLoader that is created from now on use `arguments` instead of those that the program passes."""
    from torch.utils.data import DataLoader

    original, used = DataLoader.__init__, _until_used("the program created no DataLoader")

    @wraps(original)
    def changed(self: Any, *args: Any, **given: Any) -> None:
        used()
        merged = {**given, **arguments}
        if args[5:]:
            raise TypeError("num_workers and later arguments of DataLoader are positional here; pass them by name")
        if not merged.get("num_workers"):
            for argument in ONLY_WITH_WORKERS:
                merged.pop(argument, None)
        original(self, *args, **merged)

    _replace(DataLoader, "__init__", changed)


def optimizer(**arguments: Any) -> None:
    """Makes each optimizer of torch whose class has all `arguments` use these instead of those that the program
    passes."""
    import inspect

    import torch

    used = _until_used(f"the program created no optimizer of torch with the argument {' and '.join(arguments)}")
    for optimizer in vars(torch.optim).values():
        if not isinstance(optimizer, type) or not issubclass(optimizer, torch.optim.Optimizer):
            continue
        known = inspect.signature(optimizer.__init__).parameters
        if all(name in known for name in arguments):
            _override(optimizer, arguments, used)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def _override(owner: Any, arguments: Mapping[str, Any], used: Callable[[], object]) -> None:
    original = owner.__init__

    @wraps(original)
    def changed(self: Any, *args: Any, **given: Any) -> None:
        used()
        original(self, *args, **{**given, **arguments})

    _replace(owner, "__init__", changed)


def _on_first_call(work: Callable[[Any], None]) -> None:
    """Makes torch call `work(module)` before the first call of each module that the program itself calls. Losses, and
    modules that other modules call, are left out."""
    from torch import nn

    original, seen, depth = nn.Module.__call__, set(), [0]
    used = _until_used("the program called no module")

    def changed(self: Any, *args: Any, **given: Any) -> Any:
        if depth[0] == 0 and id(self) not in seen and not isinstance(self, nn.modules.loss._Loss):
            seen.add(id(self))
            used()
            work(self)
        depth[0] += 1
        try:
            return original(self, *args, **given)
        finally:
            depth[0] -= 1

    _replace(nn.Module, "__call__", changed)


def compile_model(mode: str) -> None:
    import torch

    def work(module: Any) -> None:
        module.forward = torch.compile(module.forward, mode=None if mode in ("", "default") else mode)

    _on_first_call(work)


def bf16(_: str) -> None:
    """Runs the forward pass in autocast with bfloat16, and converts the returned tensors to float32, as Accelerate
    does."""
    import torch

    def converted(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype is torch.bfloat16 else value
        if isinstance(value, dict):
            return type(value)({key: converted(item) for key, item in value.items()})
        if type(value) in (list, tuple):
            return type(value)(converted(item) for item in value)
        return value

    def work(module: Any) -> None:
        forward = module.forward

        def in_autocast(*args: Any, **given: Any) -> Any:
            device = next((parameter.device.type for parameter in module.parameters()), "cpu")
            with torch.autocast(device, torch.bfloat16):
                result = forward(*args, **given)
            return converted(result)

        module.forward = in_autocast

    _on_first_call(work)


def channels_last(_: str) -> None:
    import torch

    def work(module: Any) -> None:
        module.to(memory_format=torch.channels_last)

    _on_first_call(work)


def threads(value: str) -> None:
    import torch

    torch.set_num_threads(count(value))
    _replace(torch, "set_num_threads", lambda _: None)  # what the script sets is overridden


def tf32(_: str) -> None:
    import torch

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def cudnn_benchmark(_: str) -> None:
    import torch

    torch.backends.cudnn.benchmark = True


def gc_freeze(_: str) -> None:
    calls = [0]

    def work(_module: Any) -> None:
        calls[0] += 1
        if calls[0] == 1:
            gc.collect()
            gc.freeze()

    _on_first_call(work)


def set_to_none(_: str) -> None:
    import torch

    original = torch.optim.Optimizer.zero_grad
    used = _until_used("the program did not call zero_grad of an optimizer")

    def changed(self: Any, set_to_none: bool = True) -> None:
        used()
        original(self, True)

    _replace(torch.optim.Optimizer, "zero_grad", changed)


def sharing(value: str) -> None:
    from importlib import import_module

    import_module("torch.multiprocessing").set_sharing_strategy(value)


def nothing(_: str) -> None:
    pass


def count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 5:
        raise Unusable(f"{text!r} is not a whole number")
    return int(text)
