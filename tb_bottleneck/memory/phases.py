"""The phases of a training (loading, forward, backward, optimizer) as time intervals."""

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace


class Phase(IntEnum):
    """What a training does at a moment. PREPARATION is the time before the first layer of a forward pass; OTHER is the
    time after a backward pass in which neither the optimizer nor a layer runs."""

    FORWARD = 0
    BACKWARD = 1
    OPTIMIZER = 2
    ZERO_GRAD = 3
    LOADING = 4
    PREPARATION = 5
    OTHER = 6


# Names of scopes in a trace. torch/csrc/autograd/engine.cpp has the scope of a node, torch/optim/optimizer.py has the
# scopes of step and zero_grad.
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|[A-Za-z0-9]Backward\d*$|CompiledFunctionBackward")
_STEP = re.compile(r"^Optimizer\.step#")
_ZERO_GRAD = re.compile(r"^Optimizer\.zero_grad#")
_LOADING = re.compile(r"^enumerate\(DataLoader\)#")
# Operators that make or move a batch. A forward pass begins with the first other operator.
_MAKES_BATCH = re.compile(
    r"^aten::(?:to|_to_copy|copy_|clone|contiguous|detach|lift_fresh|pin_memory|_pin_memory|is_pinned|item|"
    r"_local_scalar_dense|rand\w*|normal_?|uniform_|random_|bernoulli_?|zeros\w*|ones\w*|empty\w*|full\w*|fill_|zero_|"
    r"arange|stack|cat|view|reshape|select|slice|as_strided|unsqueeze|squeeze|resize_|set_|alias|permute|transpose|"
    r"index_select|unbind|split|narrow|result_type|div_?|sub_?|mul_?|add_?)$|^detach$"
)


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a training as consecutive intervals: from `starts[i]` to `starts[i + 1]` (ns), the Phase is
    `phase[i]`."""

    starts: Ints
    phase: Ints

    def at(self, times: Ints) -> Ints:
        """Returns the index of the interval of each time in `times`; 0 for times before the first interval."""
        return np.maximum(np.searchsorted(self.starts, times, side="right") - 1, 0)

    @property
    def ends(self) -> Ints:
        """End of each interval in ns. The last interval ends at the largest int64."""
        return np.append(self.starts[1:], np.iinfo(np.int64).max)

    @property
    def trains(self) -> bool:
        """True if the recording has a backward pass."""
        return bool((self.phase == Phase.BACKWARD).any())


def find_phases(trace: Trace) -> Phases:
    """Returns the phases of a recording. Time outside of loading, backward passes, the optimizer and zero_grad is
    FORWARD at first, and is then divided into FORWARD, PREPARATION and OTHER."""
    spans = {
        Phase.LOADING: _spans_named(trace, _LOADING),
        Phase.BACKWARD: _backward(trace),
        Phase.ZERO_GRAD: _spans_named(trace, _ZERO_GRAD),
        Phase.OPTIMIZER: _spans_named(trace, _STEP),
    }
    edges = distinct_values(np.concatenate([part for span in spans.values() for part in (span.starts, span.ends)]))
    starts = np.concatenate(([np.iinfo(np.int64).min], edges)).astype(np.int64)
    phase = np.full(len(starts), Phase.FORWARD, np.int64)
    for kind, span in spans.items():  # the later ones take precedence
        phase[span.contains(starts)] = kind
    return _with_preparation(trace, Phases(starts, phase))


def _spans_named(trace: Trace, pattern: re.Pattern[str]) -> Spans:
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: bool(pattern.search(name)))]
    return union(trace.events.start[rows], trace.events.end[rows])


def _backward(trace: Trace) -> Spans:
    """Returns the time intervals of the backward passes. A pass is a sequence of autograd nodes with no other operator
    between two of them."""
    rows = _outermost(trace)
    nodes = name_matches(trace.names, trace.events.name[rows], lambda name: bool(_BACKWARD.search(name)))
    if not nodes.any():
        return union(np.empty(0, np.int64), np.empty(0, np.int64))
    first = np.flatnonzero(nodes & ~np.append(False, nodes[:-1]))
    last = np.flatnonzero(nodes & ~np.append(nodes[1:], False))
    ends = np.maximum.accumulate(trace.events.end[rows])
    return union(trace.events.start[rows[first]], ends[last])


def _outermost(trace: Trace) -> Rows:
    """Returns the event rows of the operators that no operator of the same thread encloses, sorted by start."""
    outer = [np.empty(0, np.intp)]
    for rows in by_thread(trace.rows(Kind.CPU_OP), trace.events.thread).values():
        parents = nest(trace.events.start[rows], trace.events.end[rows]).parent
        outer.append(rows[parents == np.arange(len(rows))])
    return np.sort(np.concatenate(outer))


def _with_preparation(trace: Trace, phases: Phases) -> Phases:
    """Returns `phases` with each forward interval split at its first layer into PREPARATION and FORWARD. An interval
    without a layer becomes OTHER if it follows a backward pass, otherwise PREPARATION.

    The first layer is the first module if stacks were recorded, otherwise the first operator that does more than make a
    batch."""
    layers = np.append(np.sort(_layer_starts(trace)), np.iinfo(np.int64).max)
    forward = np.flatnonzero(phases.phase == Phase.FORWARD)
    first = layers[np.searchsorted(layers, phases.starts[forward])]
    inside = first < phases.ends[forward]
    after_backward = np.append(Phase.OTHER, phases.phase[:-1])[forward] == Phase.BACKWARD
    phase = phases.phase.copy()
    phase[forward] = np.where(after_backward & ~inside, Phase.OTHER, Phase.PREPARATION)
    starts = np.concatenate((phases.starts, first[inside]))
    phase = np.concatenate((phase, np.full(int(inside.sum()), Phase.FORWARD)))
    order = np.argsort(starts, kind="stable")
    return Phases(starts[order], phase[order])


def _layer_starts(trace: Trace) -> Ints:
    rows = trace.rows(Kind.PYTHON)
    modules = rows[name_matches(trace.names, trace.events.name[rows], lambda name: name.startswith("nn.Module: "))]
    if len(modules):
        return trace.events.start[modules]
    rows = _outermost(trace)
    layers = ~name_matches(trace.names, trace.events.name[rows], lambda name: bool(_MAKES_BATCH.search(name)))
    return trace.events.start[rows[layers]]
