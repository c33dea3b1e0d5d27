"""The models and optimizers of the training: how models are found, and facts about both.

If the user passes no `model` to Monitor, the monitor must find the models in order to time the forward pass. A hook in
every module would cost 1 to 2 µs per call. Instead, after the first step of each optimizer, the objects that the
garbage collector tracks are searched once for models with the optimizer's parameters.

The facts have only settings, counts and the names of torch's own classes, never the names of the user's classes.
"""

import gc
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tb_bottleneck.monitor.torch_internals import has_compiled, is_compiled_in_place, is_compiled_module, wrapped_module

MAX_BLOCKS = 5_000_000
"""Limit of `sys.getallocatedblocks()`. With more memory blocks, a search for models takes longer than a second, and is
not done."""

MAX_CLASSES = 16
"""Maximum number of classes of models that are timed."""


def classes_to_time(optimizer: Any) -> list[type]:
    """Returns the classes of the modules to time if these own all parameters of `optimizer`; otherwise an empty list.

    The modules to time are the outermost modules that have parameters or are classes of torch. Modules that are not
    trained (a teacher, a frozen encoder) and torch's own modules (a loss) belong to the forward pass, too. After a
    compilation, only modules that `torch.compile` returned are timed: replacing a method in compiled code would make
    torch compile this code again. The list is also empty if there are too many memory blocks (MAX_BLOCKS) or classes
    (MAX_CLASSES), or if one of the modules is compiled in place.
    """
    if sys.getallocatedblocks() > MAX_BLOCKS:
        return []
    modules = _outermost(_modules())
    if has_compiled():
        modules = [module for module in modules if is_compiled_module(module)]
    timed = [module for module in modules if _is_forward(module)]
    owned = {id(parameter) for module in timed for parameter in module.parameters()}
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    classes = list(dict.fromkeys(type(module) for module in timed))
    is_complete = bool(trained) and trained <= owned and len(classes) <= MAX_CLASSES
    return classes if is_complete and not any(map(is_compiled_in_place, timed)) else []


def _modules() -> list[Any]:
    from torch.nn import Module

    # Checks the types, once each: `isinstance` may run code of the object (`__class__` of a proxy).
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, Module)}
    return [found for found in objects if type(found) in kinds]


def _outermost(modules: list[Any]) -> list[Any]:
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    return [module for module in modules if id(module) not in inner and "_modules" in vars(module)]


def _is_forward(module: Any) -> bool:
    is_torch = type(module).__module__.startswith("torch.nn.")
    return is_torch or next(iter(module.parameters()), None) is not None


MAX_OBJECTS = 8
"""Maximum number of objects of each kind (model, optimizer) that facts are collected from."""
_MAX_WRAPPERS = 8


class ModelFacts:
    """Collects facts from the first MAX_OBJECTS models and the first MAX_OBJECTS optimizers, once from each object. For
    the training thread."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self._ids: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, kind: str, source: Any) -> bool:
        """Adds the facts of `source`. `kind` is "optimizer" or "model". May raise what the user's class raises.

        Returns False if `source` was added before, or if there are MAX_OBJECTS objects of this kind already, otherwise
        True."""
        ids = self._ids[kind]
        if id(source) in ids or len(ids) >= MAX_OBJECTS:
            return False
        ids.add(id(source))
        if kind == "optimizer":
            self.facts |= optimizer_facts(source)
        elif kind == "model":
            self.facts |= model_facts(source)
        return True


def optimizer_facts(optimizer: Any) -> dict[str, object]:
    """Returns the facts `parameters_by_dtype` (number of parameter elements by dtype), `optimizer` (name of the class
    in torch.optim), and `foreach` and `fused`, without unknown ones."""
    defaults = optimizer.defaults
    sizes: Counter[str] = Counter()
    for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
        sizes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    facts: dict[str, object] = {"parameters_by_dtype": dict(sizes)}
    # A subclass by the user is named after its torch base class.
    names = [base.__name__ for base in type(optimizer).__mro__ if base.__module__.startswith("torch.optim")]
    if names:
        facts["optimizer"] = names[0]
    return facts | {name: bool(defaults[name]) for name in ("foreach", "fused") if defaults.get(name) is not None}


def model_facts(model: Any) -> dict[str, object]:
    """Returns {"model_wrappers": classes of torch's wrappers around the model, outermost first}."""
    return {"model_wrappers": list(_wrappers(model))}


def _wrappers(model: Any) -> Iterator[str]:
    for _ in range(_MAX_WRAPPERS):
        kind = type(model)
        inner = wrapped_module(model)
        if inner is None or not kind.__module__.startswith("torch."):
            break
        yield kind.__name__
        model = inner
    if is_compiled_in_place(model):
        yield "compile"
