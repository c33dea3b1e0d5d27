"""The changes that can be tried: how each is applied to an unchanged script, what it may change, and its code.

A change is applied in the process of the training before the script starts. It replaces functions of torch, so that
what the script itself sets is overridden.
"""

import gc
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from tb_bottleneck.base.errors import Unusable


@dataclass(frozen=True)
class Kind:
    """One kind of change.

    `apply` gets the value as text, in the process of the training. `code` is what to put into the script, with $value.
    `numerics` says what may change in the results; empty if nothing. knowledge/trials.toml says which findings suggest
    which change.
    """

    shows: str
    apply: Callable[[str], None]
    code: str
    values: str = ""  # for help: the form of the value; empty if there is none
    numerics: str = ""
    environment: Callable[[str], dict[str, str]] = lambda _: {}
    loader: str = ""  # the argument of DataLoader that the change sets
    optimizer: str = ""  # the argument of the optimizer that the change sets


# --- how they are applied ---


def _loader(**arguments: Any) -> None:
    """Overrides arguments of every DataLoader that is created from now on."""
    from torch.utils.data import DataLoader

    original = DataLoader.__init__

    @wraps(original)
    def changed(self: Any, *args: Any, **given: Any) -> None:
        merged = {**given, **arguments}
        if args[5:]:
            raise TypeError("num_workers and later arguments of DataLoader are positional here; pass them by name")
        if not merged.get("num_workers"):
            for name in ("prefetch_factor", "persistent_workers"):
                merged.pop(name, None)
        original(self, *args, **merged)

    _replace(DataLoader, "__init__", changed)


def _optimizer(**arguments: Any) -> None:
    """Overrides arguments of every optimizer of torch that has them."""
    import inspect

    import torch

    for optimizer in vars(torch.optim).values():
        if not isinstance(optimizer, type) or not issubclass(optimizer, torch.optim.Optimizer):
            continue
        known = inspect.signature(optimizer.__init__).parameters
        if all(name in known for name in arguments):
            _override(optimizer, arguments)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def _override(owner: Any, arguments: Mapping[str, Any]) -> None:
    original = owner.__init__

    @wraps(original)
    def changed(self: Any, *args: Any, **given: Any) -> None:
        original(self, *args, **{**given, **arguments})

    _replace(owner, "__init__", changed)


def _on_first_call(work: Callable[[Any], None]) -> None:
    """Calls `work` with each module that the program itself calls (not with their children), before its first call."""
    from torch import nn

    original, seen, depth = nn.Module.__call__, set(), [0]

    def changed(self: Any, *args: Any, **given: Any) -> Any:
        if depth[0] == 0 and id(self) not in seen and not isinstance(self, nn.modules.loss._Loss):
            seen.add(id(self))
            work(self)
        depth[0] += 1
        try:
            return original(self, *args, **given)
        finally:
            depth[0] -= 1

    _replace(nn.Module, "__call__", changed)


def _compile(mode: str) -> None:
    import torch

    def work(module: Any) -> None:
        module.forward = torch.compile(module.forward, mode=None if mode in ("", "default") else mode)

    _on_first_call(work)


def _bf16(_: str) -> None:
    """Runs the forward pass in autocast, and converts what it returns to float32, as Accelerate does."""
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


def _channels_last(_: str) -> None:
    import torch

    def work(module: Any) -> None:
        module.to(memory_format=torch.channels_last)

    _on_first_call(work)


def _threads(value: str) -> None:
    import torch

    torch.set_num_threads(_count(value))
    _replace(torch, "set_num_threads", lambda _: None)  # what the script sets is overridden


def _tf32(_: str) -> None:
    import torch

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def _cudnn_benchmark(_: str) -> None:
    import torch

    torch.backends.cudnn.benchmark = True


def _gc_freeze(_: str) -> None:
    calls = [0]

    def work(_module: Any) -> None:
        calls[0] += 1
        if calls[0] == 1:
            gc.collect()
            gc.freeze()

    _on_first_call(work)


def _set_to_none(_: str) -> None:
    import torch

    original = torch.optim.Optimizer.zero_grad
    _replace(torch.optim.Optimizer, "zero_grad", lambda self, set_to_none=True: original(self, True))


def _sharing(value: str) -> None:
    from importlib import import_module

    import_module("torch.multiprocessing").set_sharing_strategy(value)


def _nothing(_: str) -> None:
    pass


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 5:
        raise Unusable(f"{text!r} is not a whole number")
    return int(text)


KINDS: Mapping[str, Kind] = {
    "workers": Kind(
        "worker processes of the DataLoader", lambda value: _loader(num_workers=_count(value)), "num_workers=$value",
        "N", loader="num_workers",
    ),
    "prefetch": Kind(
        "batches that each worker prefetches", lambda value: _loader(prefetch_factor=_count(value)),
        "prefetch_factor=$value", "N", loader="prefetch_factor",
    ),
    "pin_memory": Kind(
        "batches in pinned memory", lambda _: _loader(pin_memory=True), "pin_memory=True", loader="pin_memory",
    ),
    "persistent_workers": Kind(
        "workers that live for all epochs", lambda _: _loader(persistent_workers=True), "persistent_workers=True",
        loader="persistent_workers",
    ),
    "sharing": Kind(
        "how workers share tensors: file_system or file_descriptor", _sharing,
        'torch.multiprocessing.set_sharing_strategy("$value")', "STRATEGY",
    ),
    "threads": Kind(
        "threads of an operator on the CPU", _threads, "torch.set_num_threads($value)", "N",
        environment=lambda value: {"OMP_NUM_THREADS": value, "MKL_NUM_THREADS": value},
    ),
    "tf32": Kind(
        "TF32 for products of float32", _tf32, 'torch.set_float32_matmul_precision("high")',
        numerics="products have ten bits of mantissa",
    ),
    "cudnn_benchmark": Kind(
        "cuDNN tries its algorithms", _cudnn_benchmark, "torch.backends.cudnn.benchmark = True",
        numerics="other algorithms round differently",
    ),
    "compile": Kind(
        "torch.compile of the model", _compile, 'model = torch.compile(model, mode="$value")', "[MODE]",
        numerics="fused operators round differently",
    ),
    "bf16": Kind(
        "autocast in bfloat16", _bf16, "with torch.autocast(device.type, torch.bfloat16):\n    outputs = model(inputs)",
        numerics="activations have eight bits of mantissa",
    ),
    "channels_last": Kind(
        "channels_last for the model", _channels_last, "model = model.to(memory_format=torch.channels_last)",
        numerics="other algorithms round differently",
    ),
    "fused": Kind(
        "the fused optimizer", lambda _: _optimizer(fused=True), "fused=True",
        numerics="the update rounds differently", optimizer="fused",
    ),
    "foreach": Kind(
        "the optimizer for lists of tensors", lambda _: _optimizer(foreach=True), "foreach=True",
        numerics="the update rounds differently", optimizer="foreach",
    ),
    "set_to_none": Kind(
        "gradients are freed instead of zeroed", _set_to_none, "optimizer.zero_grad(set_to_none=True)",
    ),
    "gc_freeze": Kind(
        "the garbage collector leaves out what exists before the first step", _gc_freeze, "gc.collect()\ngc.freeze()",
    ),
    "alloc": Kind(
        "settings of the CUDA allocator", _nothing, 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "$value"', "SETTINGS",
        environment=lambda value: {"PYTORCH_CUDA_ALLOC_CONF": value, "PYTORCH_ALLOC_CONF": value},
    ),
}  # fmt: skip
"""All kinds of changes by name."""


@dataclass(frozen=True)
class Change:
    """A change with its value; both variants of a trial are lists of these. An empty list is the unchanged program."""

    settings: tuple[tuple[str, str], ...] = ()  # names of KINDS and values
    environment: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()  # appended to those of the program
    folder: str = ""  # of another work tree, in which the program runs
    label: str = ""

    @property
    def name(self) -> str:
        """The change as it is written on the command line."""
        texts = [f"{name}={value}" if value else name for name, value in self.settings]
        texts += [f"--env {name}={value}" for name, value in self.environment]
        texts += [f"--args {shlex.quote(shlex.join(self.arguments))}"] if self.arguments else []
        return " ".join([*texts, self.label]).strip() or "unchanged"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the changed program."""
        found = dict(self.environment)
        for name, value in self.settings:
            found |= KINDS[name].environment(value)
        return found

    def combined(self, other: "Change") -> "Change":
        """Returns both changes together."""
        return Change(
            self.settings + other.settings,
            self.environment + other.environment,
            self.arguments + other.arguments,
            other.folder or self.folder,
            " ".join(filter(None, (self.label, other.label))),
        )


def apply(settings: Sequence[Sequence[str]]) -> None:
    """Applies settings in this process, before the script starts."""
    for name, value in settings:
        KINDS[name].apply(value)


def parsed(texts: Sequence[str]) -> list[Change]:
    """Returns the changes of a command line. `workers=2,4` stands for two changes; other words are applied together.

    Raises:
        Unusable: there is no such change, or its value is missing or wrong.
    """
    variants = [Change()]
    for text in texts:
        name, _, value = text.partition("=")
        kind = KINDS.get(name)
        if kind is None:
            raise Unusable(
                f"no change is named {name!r}; there are {', '.join(KINDS)}, and --env, --args, --patch, --rev"
            )
        if kind.values and not kind.values.startswith("[") and not value:
            raise Unusable(f"{name} needs a value: {name}={kind.values}")
        if value and not kind.values:
            raise Unusable(f"{name} has no value")
        values = value.split(",") if kind.values == "N" else [value]
        if kind.values == "N":
            for each in values:
                _count(each)
        variants = [each.combined(Change(((name, one),))) for each in variants for one in values]
    return variants
