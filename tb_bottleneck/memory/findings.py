"""Findings about the memory of a trace. A rule (function in RULES) returns None if it finds nothing, or if the data
that it needs was not recorded."""

import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from tb_bottleneck.base.intervals import union
from tb_bottleneck.memory.categories import INDEX, Category, MemoryAccount
from tb_bottleneck.memory.finding import INFO, SEVERITIES, WARNING, MemoryFinding, Value
from tb_bottleneck.memory.growth import growth_finding, place_text
from tb_bottleneck.memory.phases import Phase
from tb_bottleneck.memory.sites import Site
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Rows

NEAR_LIMIT = 0.9
"""Share of the device's memory from which on a peak is near the limit. torch_tb_profiler and gpuprof use the same
share."""
DOMINATES = 0.5
"""Share of the peak above which a part is larger than everything else together."""
STATE_DOMINATES = 0.4
"""Share of the peak from which on the optimizer's state dominates. The limit is below DOMINATES: in 32 bits, the states
of Adam are half of the sum of parameters, gradients and states, so they never exceed everything else together. A
choice."""
ONE_TENSOR = 0.15
"""Share of the peak above which a single block is large. In a network of twenty equal layers, a layer has 5 %."""
FRAGMENTED = 0.2
LEAST_FRAGMENTED = 128 << 20  # less is a few segments of the allocator, of 2 and 20 MB each; a choice
"""Share of the peak above which memory is fragmented: memory that was free, but could not serve a request."""
KEPT = 0.4
"""Share of the tensors of a forward pass that exist at the same time, from which on gradients were probably enabled. In
public recordings, this share is 0.59 to 0.63 with gradients enabled. It is below 0.06 under no_grad, where the input of
a layer is freed after the layer."""
MIN_TENSORS = 20
"""With fewer tensors in a pass, KEPT is not applied: a pass of three layers keeps most of its tensors."""
LITTLE = 0.25
"""Share of the device's memory. If the peak is below this share, findings of severity info are left out, because a
batch of four times the size would fit. A choice."""
MIN_FLUSHES = 2
_ZERO = re.compile(r"^aten::(?:zero_|_foreach_zero_|fill_)$")
_PRODUCTS = re.compile(r"^aten::(?:mm|addmm|bmm|baddbmm|convolution|_scaled_dot_product\w*)$")
_FLOAT = re.compile(rb'^\["float"')
_ZERO_GRAD = re.compile(r"^Optimizer\.zero_grad#")


def findings_of(memory: TraceMemory, steps: Steps) -> list[MemoryFinding]:
    """Returns the findings about the memory of a trace, the most severe first. `steps` are the steps of the
    training."""
    in_fp32 = None if memory.on_cpu else _fp32_share(memory)
    evidence = [Value("fp32_share", in_fp32, "share")] if in_fp32 is not None and in_fp32 > DOMINATES else []
    found = [near_limit(memory.account, evidence), fragmentation(memory.account), growth_finding(memory, steps.host)]
    found += [rule(memory, steps) for rule in RULES]
    capacity = memory.account.capacity
    if capacity is not None and memory.account.peak < LITTLE * capacity:
        found = [it for it in found if it is not None and it.severity != INFO]
    return by_severity(found)


def by_severity(found: Iterable[MemoryFinding | None]) -> list[MemoryFinding]:
    """Returns the findings, the most severe first; among equally severe ones, the one with the most bytes first."""
    return sorted((it for it in found if it is not None), key=lambda it: (SEVERITIES.index(it.severity), -it.bytes))


def near_limit(account: MemoryAccount, more: Iterable[Value] = ()) -> MemoryFinding | None:
    """Returns the finding if the peak is at least the fraction NEAR_LIMIT of the device's memory; otherwise None, also
    if the size of the device's memory is unknown. `more` are lines that are added to the evidence."""
    if account.capacity is None or account.peak < NEAR_LIMIT * account.capacity:
        return None
    share = account.peak / account.capacity
    evidence = (Value("peak", account.peak), Value("capacity", account.capacity), Value("peak_share", share, "share"))
    return MemoryFinding("near_limit", WARNING, 0, (*evidence, *more))


def dominates(account: MemoryAccount, category: Category, cause: str) -> MemoryFinding | None:
    """Returns a finding with the key `cause` if `category` has more than the fraction DOMINATES of the bytes at the
    peak, otherwise None."""
    if account.share(category) <= DOMINATES:
        return None
    size = account.bytes_of[category]
    share = Value("part_share", account.share(category), "share")
    return MemoryFinding(cause, INFO, size, (Value("part", size), share))


def state_dominates(account: MemoryAccount) -> MemoryFinding | None:
    """Returns the finding if the optimizer's state is the largest category at the peak, and at least the fraction
    STATE_DOMINATES of its bytes; otherwise None."""
    share = account.share(Category.OPTIMIZER)
    if share < STATE_DOMINATES or share < max(account.share(category) for category in account.bytes_of):
        return None
    size = account.bytes_of[Category.OPTIMIZER]
    return MemoryFinding("optimizer_dominates", INFO, size, (Value("part", size), Value("part_share", share, "share")))


def _optimizer_dominates(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    return state_dominates(memory.account)


def _activations_dominate(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    """Returns the finding if activations dominate the peak, otherwise None. Also None if no backward pass was recorded,
    because without training, activations always dominate."""
    found = dominates(memory.account, Category.ACTIVATIONS, "activations_dominate")
    return found if memory.phases.trains else None


def tensor_dominates(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    """Returns the finding if one block of activations, temporaries or inputs has more than the fraction ONE_TENSOR of
    the bytes at the peak, otherwise None."""
    blocks = memory.blocks
    kinds = [INDEX[kind] for kind in (Category.ACTIVATIONS, Category.TEMPORARIES, Category.INPUTS)]
    rows = np.flatnonzero(memory.at_peak & np.isin(memory.category, kinds))
    if not len(rows):
        return None
    largest = rows[np.argmax(blocks.size[rows])]
    return dominating_tensor(memory.account, memory.sites(np.arange(len(blocks)) == largest)[0])


def dominating_tensor(account: MemoryAccount, site: Site) -> MemoryFinding | None:
    """Returns the finding if the largest block of `site` has more than the fraction ONE_TENSOR of the bytes at the
    peak, otherwise None. A site has the blocks that one place in the program allocated."""
    share = site.largest / max(account.peak, 1)
    if share <= ONE_TENSOR:
        return None
    evidence = [Value("largest", site.largest), Value("part_share", share, "share")]
    evidence += [Value("at", place_text(site.place), "text")] if place_text(site.place) else []
    return MemoryFinding("tensor_dominates", INFO, site.largest, tuple(evidence))


def fragmentation(account: MemoryAccount) -> MemoryFinding | None:
    """Returns the finding if the category FRAGMENTATION has more than the fraction FRAGMENTED of the bytes at the peak,
    and at least LEAST_FRAGMENTED bytes; otherwise None."""
    size = account.bytes_of[Category.FRAGMENTATION]
    if account.share(Category.FRAGMENTATION) <= FRAGMENTED or size < LEAST_FRAGMENTED:
        return None
    share = Value("part_share", account.share(Category.FRAGMENTATION), "share")
    return MemoryFinding("fragmentation", WARNING, size, (Value("unusable", size), share))


def cache_flushes(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    """Returns the finding if the reserved memory falls at least MIN_FLUSHES times before it rises for the last time,
    otherwise None."""
    change = np.diff(memory.events.reserved)
    rises = np.flatnonzero(change > 0)
    times = int(np.count_nonzero(change[: rises[-1]] < 0)) if len(rises) else 0
    if times < MIN_FLUSHES:
        return None
    return MemoryFinding("cache_flushes", WARNING, 0, (Value("times", times, "count"),))


def gradients_kept(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    """Returns the finding if no backward pass allocates gradients, and zero_grad fills them with zeros; otherwise
    None."""
    if not memory.phases.trains or memory.gradient_bytes:
        return None
    events = memory.trace.events
    scopes = _named(memory, Kind.ANNOTATION, _ZERO_GRAD)
    zeros = _named(memory, Kind.CPU_OP, _ZERO)
    inside = union(events.start[scopes], events.end[scopes]).contains(events.start[zeros])
    if not inside.any():
        return None
    calls = float(np.count_nonzero(inside) / max(len(steps), 1))
    return MemoryFinding("gradients_kept", INFO, 0, (Value("zeroed", calls, "count"),))


def evaluation_without_no_grad(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    """Returns the finding if the run has no backward pass, but keeps tensors as if for one: at least the fraction KEPT
    of the tensors of a forward pass exist at the peak. Otherwise None; also with fewer than MIN_TENSORS tensors."""
    if memory.phases.trains:
        return None
    blocks = memory.blocks
    activations = memory.category == INDEX[Category.ACTIVATIONS]
    activations &= memory.phases.phase[memory.phases.at(blocks.begin)] == Phase.FORWARD
    step = np.searchsorted(steps.host, blocks.begin, side="right") - 1
    alive = memory.at_peak & activations
    if not alive.any() or not len(steps):
        return None
    passes, counts = np.unique(step[alive], return_counts=True)  # tensors from before the window may be alive, too
    of_pass = activations & (step == passes[counts.argmax()])
    share = np.count_nonzero(alive & of_pass) / np.count_nonzero(of_pass)
    if np.count_nonzero(of_pass) < MIN_TENSORS or share < KEPT:
        return None
    kept = int(blocks.size[alive & of_pass].sum())
    evidence = (Value("kept_share", share, "share"), Value("part", kept))
    return MemoryFinding("evaluation_without_no_grad", WARNING, kept, evidence)


def fp32_memory(memory: TraceMemory, steps: Steps) -> MemoryFinding | None:
    """Returns the finding if activations dominate the memory of a device, and most matrix multiplications run in fp32;
    otherwise None. Always None for memory of the CPU."""
    account = memory.account
    if memory.on_cpu or account.share(Category.ACTIVATIONS) <= DOMINATES:
        return None
    share = _fp32_share(memory)
    if share is None or share <= DOMINATES:
        return None
    size = account.bytes_of[Category.ACTIVATIONS] // 2
    return MemoryFinding("fp32_memory", INFO, size, (Value("fp32_share", share, "share"), Value("part", 2 * size)))


def _fp32_share(memory: TraceMemory) -> float | None:
    """Returns the fraction of the matrix multiplications whose first input has the type fp32; None if types were not
    recorded."""
    signatures = memory.trace.events.signature[_named(memory, Kind.CPU_OP, _PRODUCTS)]
    counts = Counter(memory.trace.signatures[signature][1] for signature in signatures.tolist())
    known = {text: count for text, count in counts.items() if text}
    return sum(count for text, count in known.items() if _FLOAT.match(text)) / sum(known.values()) if known else None


def _named(memory: TraceMemory, kind: Kind, pattern: re.Pattern[str]) -> Rows:
    trace = memory.trace
    rows = trace.rows(kind)
    return rows[name_matches(trace.names, trace.events.name[rows], lambda name: bool(pattern.search(name)))]


RULES: tuple[Callable[[TraceMemory, Steps], MemoryFinding | None], ...] = (
    _optimizer_dominates,
    _activations_dominate,
    tensor_dominates,
    cache_flushes,
    gradients_kept,
    evaluation_without_no_grad,
    fp32_memory,
)
