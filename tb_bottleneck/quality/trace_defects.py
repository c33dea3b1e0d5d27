"""What is wrong with a recording before anything is judged: codes and the figures that show them, no words."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from tb_bottleneck.measures.trace.profiler_overhead import NS_PER_CALL, NS_PER_FRAME, NS_PER_OPERATOR
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.trace import Trace

# Below this there is nothing to take shares of: a single layer already launches more.
MIN_DEVICE_OPS = 8
MIN_OPERATORS = 8
# More launches without a kernel than this, and idle time may be time whose kernels were lost (CUPTI drops them at the
# start of a session from CUDA 12.6 Update 2 to 13.0, pytorch/pytorch#192021).
LOST_KERNELS_SHARE = 0.02
# Names that only work on an accelerator can have. Recurrent layers on the CPU ask aten::cudnn_is_acceptable, too.
_DEVICE_ONLY = (
    *("nccl:", "nccl_", "cudnn", "cuda::", "flash_attn", "aten::miopen", "aten::_cudnn_rnn"),
    *("aten::cudnn_convolution", "aten::cudnn_batch_norm", "aten::cudnn_grid", "aten::cudnn_affine"),
)
# Names that only operators on accelerators can have that are not judged: Ascend, Gaudi, TPU, Apple.
_FOREIGN_ONLY = ("npu::", "hpu::", "torch_hpu", "xla::", "aten::_mps_", "aten::mps_", "mps::")
# Names that only operators on the CPU can have.
_CPU_ONLY = re.compile(r"^aten::mkldnn_|^mkldnn::|^onednn::|_for_cpu$")
MIN_JUDGED_STEPS = 2
PROFILER_COST_SHARE = 0.10


@dataclass(frozen=True)
class Defect:
    """Something wrong with a recording. A fatal one leaves nothing that could be judged."""

    code: str
    fatal: bool
    facts: Mapping[str, float | str] = field(default_factory=dict)


def fatal_defect(trace: Trace, steps: Steps | None) -> Defect | None:
    """The reason why this recording cannot be judged, None where it can."""
    foreign = int((trace.events.kind == Kind.FOREIGN_DEVICE).sum())
    ops, launches = len(trace.device_ops), len(trace.calls.of(Role.LAUNCH))
    operators = len(trace.rows(Kind.CPU_OP))
    elsewhere = not ops and _named(trace, _FOREIGN_ONLY)
    if elsewhere or (foreign and not (ops and len(trace.calls))):
        name = trace.header.devices[0].name if trace.header.devices else ""
        return Defect("unsupported_device", True, {"events": foreign, "device": name or "another accelerator"})
    launched = launches >= MIN_DEVICE_OPS or (trace.events.kind == Kind.COUNTER_RANGE).any()
    if not ops and (launched or _device_only_operators(trace) or _unwatched(trace, operators)):
        return Defect("kernels_not_recorded", True, {"launches": launches})
    too_few = ops < MIN_DEVICE_OPS if ops else operators < MIN_OPERATORS
    if steps is None or steps.end <= steps.begin or too_few:
        return Defect("insufficient_data", True, {"device_ops": ops, "operators": operators})
    return None


def damage_of(trace: Trace) -> Iterator[Defect]:
    """What of the file was lost."""
    if trace.truncated:
        yield Defect("truncated", False, {"how": trace.truncated})
    lost = sum(trace.lost.values())
    if lost:
        most = trace.lost.most_common(1)[0][0]
        yield Defect("events_lost", False, {"events": lost, "kept": len(trace.events), "reason": most})


def defects_of(trace: Trace, steps: Steps) -> Iterator[Defect]:
    """What weakens a recording that can be judged."""
    yield from damage_of(trace)
    without = _launches_without_kernel(trace, steps)
    if without > LOST_KERNELS_SHARE:
        yield Defect("kernels_lost", False, {"share": without})
    if len(steps) < MIN_JUDGED_STEPS:
        yield Defect("few_steps", False, {"steps": len(steps)})
    inflated = _own_cost(trace, steps) / (steps.end - steps.begin)
    if inflated > PROFILER_COST_SHARE:
        yield Defect("profiler_inflated", False, {"share": inflated})


def work_ran_on_cpu(trace: Trace) -> bool:
    """Whether a device was there, the recording would show its work, and all the work was the CPU's."""
    watched = len(trace.calls) > 0
    return (
        bool(trace.header.devices)
        and watched
        and not len(trace.all_device_ops)
        and not len(trace.calls.of(Role.LAUNCH))
    )


def _device_only_operators(trace: Trace) -> bool:
    return trace.header.backend == "nccl" or _named(trace, _DEVICE_ONLY)


def _unwatched(trace: Trace, operators: int) -> bool:
    """Whether a device is described, the recording did not look at it, and nothing proves that the CPU did the work.

    With activities=[ProfilerActivity.CPU] a training on the device leaves its operators alone, as short as their calls.
    """
    if not trace.header.devices or len(trace.calls) or operators < MIN_OPERATORS:
        return False
    used = np.unique(trace.events.name[trace.rows(Kind.CPU_OP)])
    return not any(_CPU_ONLY.search(trace.names[name]) for name in used.tolist())


def _named(trace: Trace, beginnings: tuple[str, ...]) -> bool:
    """Whether an operator or annotation begins with one of these."""
    used = np.unique(trace.events.name[trace.rows(Kind.CPU_OP, Kind.ANNOTATION)])
    return any(trace.names[name].startswith(beginnings) for name in used.tolist())


def _launches_without_kernel(trace: Trace, steps: Steps) -> float:
    """Share of the window's launching calls whose work was not recorded.

    A window that was not cut into steps ends with the last operation: there, calls behind it count too, since a
    profiler that runs out of buffers loses the tail.
    """
    ops, calls = trace.all_device_ops, trace.calls
    seen = np.zeros(len(calls), np.bool_)
    seen[ops.call[ops.launched]] = True
    launching = (calls.role == Role.LAUNCH) & (calls.start >= steps.host[0])
    if steps.basis != "whole":
        launching &= calls.start < steps.host[-1]
    return float((~seen[launching]).mean()) if launching.any() else 0.0


def _own_cost(trace: Trace, steps: Steps) -> float:
    """The profiler's own time in the window on the busiest thread, as an estimate in ns."""
    events = trace.events
    inside = (events.start >= steps.begin) & (events.start < steps.end)
    cost = np.zeros(len(trace.threads) or 1)
    for kind, price in ((Kind.CPU_OP, NS_PER_OPERATOR), (Kind.PYTHON, NS_PER_FRAME), (Kind.CALL, NS_PER_CALL)):
        rows = inside & (events.kind == kind)
        cost += price * np.bincount(events.thread[rows], minlength=len(cost))
    return float(cost.max())
