"""Facts about the training's optimizers and model.

Only settings, counts and the names of torch's own classes are collected, never the names of the user's classes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tb_bottleneck.monitor.torch_internals import is_compiled_in_place, wrapped_module

MAX_OBJECTS = 8
"""Objects of each kind that facts are collected from."""
_MAX_WRAPPERS = 8


class ModelFacts:
    """Collects facts from the first MAX_OBJECTS objects of each kind, once each. For the training thread."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self._ids: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, kind: str, source: Any) -> bool:
        """Adds the facts of an optimizer or model. Returns True if it is new. The user's class may raise."""
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
    """Returns the optimizer's torch class, its implementation flags, and its number of parameter elements by dtype."""
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
    """Returns torch's wrappers around the model, outermost first."""
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
