"""Collects facts from functions that may fail."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

_log = logging.getLogger(__name__)


def collect_facts(getters: Mapping[str, Callable[..., Any]], *arguments: object) -> dict[str, object]:
    """Calls each getter with `arguments` and returns the facts by name, without those that are None. Never raises."""
    facts: dict[str, object] = {}
    for name, get in getters.items():
        try:
            value = get(*arguments)
        except Exception:  # a fact must never disturb the training, and torch or the OS may raise anything
            _log.debug("the fact %r is not available", name, exc_info=True)
            continue
        if value is not None:
            facts[name] = value
    return facts
