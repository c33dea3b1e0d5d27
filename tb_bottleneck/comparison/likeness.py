"""Whether two recordings do the same work: how alike the operators are that they run per step."""

import numpy as np

from tb_bottleneck.comparison.batch import passes_of
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.kinds import Kind

# Below this the two are hardly one training. On public recordings, other loaders, batches and torch versions of one
# model leave 0.92 to 0.99, and other models 0.03 to 0.34.
LIKE = 0.7


def likeness(a: Recording, b: Recording) -> float:
    """Operators per step that both run, as a share of those that either runs: 0 to 1.

    Counted are operators that launch work on the device; where none did, those that multiply or convolve. Where one
    side adds up gradients over more passes than the other, they are counted per pass as well, and the better one holds.
    """
    counts = _operators(a), _operators(b)
    passes = passes_of(a), passes_of(b)
    if passes[0] == passes[1]:
        return _agreeing(*counts)
    each = [{name: n / size for name, n in one.items()} for one, size in zip(counts, passes, strict=True)]
    return max(_agreeing(*counts), _agreeing(*each))


def _agreeing(*counts: dict[str, float]) -> float:
    names = counts[0].keys() | counts[1].keys()
    either = sum(max(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names)
    both = sum(min(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names)
    return both / either if either else 1.0


def _operators(recording: Recording) -> dict[str, float]:
    """Calls per step by the operator's name."""
    trace, steps = recording.trace, recording.steps
    if recording.on_device:
        called, operator = trace.calling_operators
        ops = trace.device_ops
        inside = ops.launched & recording.in_window(ops.start)
        calls = np.unique(ops.call[inside])
        rows = operator[calls[called[calls]]] if len(trace.calls) else calls
    else:
        products = trace.names_where(lambda name: name in _PRODUCTS)
        rows = trace.rows(Kind.CPU_OP)
        rows = rows[np.isin(trace.events.name[rows], products) & recording.in_window(trace.events.start[rows])]
    names, counts = np.unique(trace.events.name[rows], return_counts=True)
    found = zip(names.tolist(), counts.tolist(), strict=True)
    return {trace.names[name]: count / len(steps) for name, count in found}


_PRODUCTS = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::mkldnn_convolution",
)
