"""Facts about the objects that the training works with: its optimizers, its model. (Its loaders: loaders.py.)

Only settings, counts and the names of torch's own classes are kept; what the user's classes are called is their
business.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

MOST_LOOKED_AT = 8


class ModelFacts:
    """Collects facts from the first few objects of each kind, once each. Called on the training thread."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self._known: defaultdict[str, set[int]] = defaultdict(set)

    def look(self, kind: str, one: Any) -> bool:
        """Whether the object was new. It may raise, because a user's object may answer in any way."""
        known = self._known[kind]
        if id(one) in known or len(known) >= MOST_LOOKED_AT:
            return False
        known.add(id(one))
        if kind == "optimizer":
            self.facts |= optimizer_facts(one)
        elif kind == "model":
            self.facts |= model_facts(one)
        return True


def optimizer_facts(optimizer: Any) -> dict[str, object]:
    """Which of torch's optimizers it is, how it runs, and what it holds. Counts are of parameters, not of tensors."""
    defaults = optimizer.defaults
    sizes: Counter[str] = Counter()
    for parameter in (one for group in optimizer.param_groups for one in group["params"]):
        sizes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    facts: dict[str, object] = {"parameters_by_dtype": dict(sizes)}
    # A class of the user's own is named after the torch class that it comes from.
    names = [one.__name__ for one in type(optimizer).__mro__ if one.__module__.startswith("torch.optim")]
    if names:
        facts["optimizer"] = names[0]
    return facts | {name: bool(defaults[name]) for name in ("foreach", "fused") if defaults.get(name) is not None}


def model_facts(model: Any) -> dict[str, object]:
    """What wraps the model: torch's own wrappers only, outermost first."""
    return {"model_wrappers": list(_wrappers(model))}


def _wrappers(model: Any) -> Iterator[str]:
    for _ in range(MOST_LOOKED_AT):
        kind = type(model)
        inner = getattr(model, "module", None) or getattr(model, "_orig_mod", None)
        if inner is None or not kind.__module__.startswith("torch."):
            break
        yield kind.__name__
        model = inner
    if getattr(model, "_compiled_call_impl", None) is not None:
        yield "compile"
