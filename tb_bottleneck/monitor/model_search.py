"""Finds the models that a training calls, from the parameters of its optimizer.

A monitor without `model` cannot time the forward pass, and a hook in every module would cost 1 to 2 µs per call. So the
objects that the garbage collector tracks are looked through once, after the first step of an optimizer.
"""

import gc
import sys
from typing import Any

from tb_bottleneck.monitor.torch_internals import has_compiled, is_compiled_in_place, is_compiled_module

MAX_BLOCKS = 5_000_000
"""Memory blocks of the process, as Python counts them. With more objects the search would take longer than a second."""

MAX_CLASSES = 16
"""Classes of models that are timed."""


def classes_to_time(optimizer: Any) -> list[type]:
    """Returns the classes of the outermost modules if these own all parameters of the optimizer; otherwise nothing.

    Other modules with parameters (a teacher, a frozen encoder) and torch's own (a loss) belong to the forward pass,
    too. After a compilation only modules that `torch.compile` returned are timed: a method that changes inside compiled
    code would be compiled again.
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

    # By the type, since `isinstance` may run code of the object (`__class__` of a proxy); each type is checked once.
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, Module)}
    return [found for found in objects if type(found) in kinds]


def _outermost(modules: list[Any]) -> list[Any]:
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    return [module for module in modules if id(module) not in inner and "_modules" in vars(module)]


def _is_forward(module: Any) -> bool:
    is_torch = type(module).__module__.startswith("torch.nn.")
    return is_torch or next(iter(module.parameters()), None) is not None
