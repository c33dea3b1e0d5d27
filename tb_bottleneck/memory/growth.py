"""Detects memory that each step allocates but does not free."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.finding import CRITICAL, WARNING, MemoryFinding, Value
from tb_bottleneck.memory.recorded_memory import RecordedMemory
from tb_bottleneck.memory.sites import Place
from tb_bottleneck.trace.table import Bools, Ints

# The steps of a healthy run allocate and free exactly the same bytes. A few steps that all grow are no chance.
MIN_STEPS = 3
# Smaller growth is a counter or a loss value. A run would need a thousand steps to double its memory.
MIN_SHARE = 1e-3
# A step that keeps its autograd graph leaves nearly all its activations. A step that keeps its outputs leaves few.
GRAPH_SHARE = 0.25
# A training that runs out of memory within an epoch does not finish: ImageNet in batches of 128 has 10,009 steps.
SOON = 10_000


@dataclass(frozen=True, eq=False)
class Growth:
    """Memory that steps allocate and do not free.

    `left` has the bytes that each step leaves allocated. `kept` is a mask of the blocks with these bytes. `activations`
    is the mean per step of the bytes of activations that the step allocates."""

    left: Ints
    kept: Bools
    activations: int

    @property
    def per_step(self) -> int:
        """Median of the bytes in `left`, which each step leaves allocated; 0 without steps."""
        return int(np.median(self.left)) if len(self.left) else 0

    def steady(self, peak: int) -> bool:
        """Returns True if enough steps were recorded, each leaves memory allocated, and the median is at least the
        fraction MIN_SHARE of `peak` (bytes)."""
        enough = len(self.left) >= MIN_STEPS and bool((self.left > 0).all())
        return enough and self.per_step >= MIN_SHARE * peak

    @property
    def of_graphs(self) -> bool:
        """True if a step leaves at least the fraction GRAPH_SHARE of the bytes of its activations, which suggests that
        the autograd graph is kept."""
        return self.per_step >= GRAPH_SHARE * max(self.activations, 1)


def growth_between(edges: Ints, blocks: Blocks, category: Ints) -> Growth:
    """Returns the memory that steps allocate and do not free. `edges` has the start of each step and the end of the
    last step, in ns. `category` has the category of each block, as an index into CATEGORIES.

    The last step is left out, because no later step could free its blocks. Parameters and the optimizer's state, which
    are allocated once, do not count."""
    once = np.isin(category, (INDEX[Category.PARAMETERS], INDEX[Category.OPTIMIZER]))
    judged_steps = max(len(edges) - 2, 0)
    step = np.searchsorted(edges, blocks.begin, side="right") - 1
    judged = (step >= 0) & (step < judged_steps)
    kept = judged & ~blocks.freed & ~once
    left = np.bincount(step[kept], blocks.size[kept], minlength=judged_steps).astype(np.int64)
    forward = judged & (category == INDEX[Category.ACTIVATIONS])
    return Growth(left, kept, int(blocks.size[forward].sum() / max(judged_steps, 1)))


def growth_finding(memory: RecordedMemory, edges: Ints) -> MemoryFinding | None:
    """Returns the finding if each step allocates memory and does not free it, otherwise None. `edges` has the start of
    each step and the end of the last step, in ns.

    The finding is critical if the free memory of the device lasts for fewer than SOON further steps."""
    growth, headroom = growth_between(edges, memory.blocks, memory.category), memory.account.headroom
    if not growth.steady(memory.account.peak):
        return None
    sites = memory.sites(growth.kept)
    evidence = [Value("per_step", growth.per_step), Value("steps", len(growth.left), "count")]
    steps_left = None if headroom is None else headroom // growth.per_step
    evidence += [] if steps_left is None else [Value("steps_left", steps_left, "count")]
    evidence += [Value("at", place_text(site.place), "text") for site in sites[:1] if place_text(site.place)]
    cause = "retained_graph" if growth.of_graphs else "growing_memory"
    severity = CRITICAL if steps_left is not None and steps_left < SOON else WARNING
    return MemoryFinding(cause, severity, int(growth.left.sum()), tuple(evidence))


def place_text(place: Place) -> str:
    """Returns a place in the program as text: line, module and operator, as far as they were recorded; empty if none of
    them was recorded."""
    line = f"{place.file}:{place.line} {place.function}" if place.line else f"{place.file} {place.function}".strip()
    return ", ".join(part for part in (line, place.module, place.operator) if part)
