"""Tells when an optimizer steps: torch's own hooks for all optimizers, made for this.

A step that `torch.compile` compiled runs without hooks: such a loop calls `monitor.step()`.
"""

import threading
from collections.abc import Callable
from typing import Any

from tb_bottleneck.monitor.facts.model import MOST_LOOKED_AT
from tb_bottleneck.monitor.hooks.hook_context import HookContext

SIGNAL = "optimizer"


def install(at: HookContext) -> Callable[[], None]:
    """Registers the hooks. Returns what takes them away again."""
    from torch.optim import optimizer as module

    seen: set[int] = set()

    # torch.compile traces the hooks of an optimizer that it compiles, and must find nothing in them.
    def before(optimizer: Any, _arguments: Any, _options: Any) -> None:
        if not at.compiling() and _may(at):
            at.guard.call(SIGNAL, at.clock.optimizer_begins, id(optimizer))

    def after(optimizer: Any, _arguments: Any, _options: Any) -> None:
        if not at.compiling() and _may(at):
            at.guard.call(SIGNAL, _stepped, at, optimizer, seen)

    handles = [
        module.register_optimizer_step_pre_hook(before),
        module.register_optimizer_step_post_hook(after),
    ]

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def _may(at: HookContext) -> bool:
    if not at.patches.live or not at.guard.is_on(SIGNAL):
        return False
    return at.clock.is_mine() or (at.clock.in_backward and _is_autograds())


def _is_autograds() -> bool:
    """Whether this thread is none of Python's: an optimizer that runs inside the backward pass does so on autograd's
    own thread, while the training thread waits. Another thread that trains at that moment was started by Python."""
    mine = threading.get_ident()
    # Not by current_thread(): for a thread it does not know it makes an object that stays.
    return not any(one.ident == mine and not isinstance(one, threading._DummyThread) for one in threading.enumerate())


def _stepped(at: HookContext, optimizer: Any, seen: set[int]) -> None:
    if id(optimizer) not in seen and len(seen) < MOST_LOOKED_AT:
        seen.add(id(optimizer))
        at.seen("optimizer", optimizer)
    # Before the clock hears of it, because it may end the step at once.
    at.spans.end()
    at.clock.optimizer_ends(id(optimizer))
