"""Detects steps that are replayed as one CUDA graph.

A graph that is captured while an optimizer steps contains the optimizer's update. Replaying the graph runs no hook of
the optimizer, so the replay itself counts as an update.
"""

import functools
from typing import Any

from tb_bottleneck.monitor.facts.model import MAX_OBJECTS
from tb_bottleneck.monitor.hooks.hook_context import HookContext

SIGNAL = "cuda_graphs"


def install(context: HookContext) -> None:
    """Replaces the methods of `torch.cuda.CUDAGraph` that capture and replay."""
    import torch

    graphs = _Graphs(context)
    for name, around in (
        ("capture_begin", graphs.around_begin),
        ("capture_end", graphs.around_end),
        ("replay", graphs.around_replay),
    ):
        context.patches.replace(torch.cuda.CUDAGraph, name, around)


class _Graphs:
    """The ids of the CUDA graphs that contain an optimizer's update, and the hooks that find them. A new graph may get
    the id of a deleted graph; the capture of the new graph then corrects the entry."""

    def __init__(self, context: HookContext) -> None:
        self._context = context
        self._updates_before = 0
        self._with_update: set[int] = set()

    def around_begin(self, original: Any) -> Any:
        @functools.wraps(original)
        def capture_begin(graph: Any, *arguments: Any, **options: Any) -> Any:
            self._updates_before = self._context.clock.updates
            return original(graph, *arguments, **options)

        return capture_begin

    def around_end(self, original: Any) -> Any:
        @functools.wraps(original)
        def capture_end(graph: Any, *arguments: Any, **options: Any) -> Any:
            self._with_update.discard(id(graph))
            if self._context.clock.updates > self._updates_before and len(self._with_update) < MAX_OBJECTS:
                self._with_update.add(id(graph))
            return original(graph, *arguments, **options)

        return capture_end

    def around_replay(self, original: Any) -> Any:
        context, guard = self._context, self._context.guard

        @functools.wraps(original)
        def replay(graph: Any, *arguments: Any, **options: Any) -> Any:
            if id(graph) not in self._with_update or not context.is_active(SIGNAL):
                return original(graph, *arguments, **options)
            guard.call(SIGNAL, context.clock.optimizer_begins, id(graph))
            try:
                return original(graph, *arguments, **options)
            finally:
                guard.call(SIGNAL, self._replayed, id(graph))

        return replay

    def _replayed(self, graph: int) -> None:
        self._context.spans.end()  # before the next line, which may end the step
        self._context.clock.optimizer_ends(graph)
