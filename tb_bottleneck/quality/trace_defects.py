"""Defects of traces that can be found before the regimes are judged: codes and figures, no texts."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from tb_bottleneck.base.intervals import clip, union
from tb_bottleneck.measures.profiler_overhead import NS_PER_CALL, NS_PER_FRAME, NS_PER_OPERATOR
from tb_bottleneck.measures.trace.window_rows import launches_without_work
from tb_bottleneck.roofline.kernel_bounds import underfilled
from tb_bottleneck.trace.columns.device_clock import EARLY_SHARE
from tb_bottleneck.trace.columns.valid_ranges import TWICE
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.trace import Trace

CUT_OFF = "cut off"  # the reason of sources/lenient.py for the last event of a truncated file
# With fewer operations there is nothing to judge: a single layer already launches more.
MIN_DEVICE_OPS = 8
MIN_OPERATORS = 8
# Fewer operations are enough if kernels that fill the device keep it busy: a launch takes the host microseconds, so
# nothing but the kernels can limit a run of kernels that take milliseconds. Two show that they follow each other.
LARGE_KERNEL_NS = 1_000_000
MIN_LARGE_KERNELS = 2
BUSY_SHARE = 0.90
# With at most this many operators per launch, the work ran on the device: public recordings of devices have 2 to 27.
# With more operators per launch, a few launches do not show where the operators ran.
OPERATORS_PER_LAUNCH = 100
# With a larger share of launches without a kernel, idle time may be time of lost kernels (CUPTI drops them at the start
# of a session from CUDA 12.6 Update 2 to 13.0, pytorch/pytorch#192021).
LOST_KERNELS_SHARE = 0.02
# Prefixes of names that occur only if work runs on an accelerator. "aten::cudnn" is too short for a prefix, because
# recurrent layers on the CPU call aten::cudnn_is_acceptable.
_DEVICE_ONLY = (
    *("nccl:", "nccl_", "cudnn", "cuda::", "flash_attn", "aten::miopen", "aten::_cudnn_rnn"),
    *("aten::cudnn_convolution", "aten::cudnn_batch_norm", "aten::cudnn_grid", "aten::cudnn_affine"),
)
# Prefixes of names that occur only on accelerators that are not supported: Ascend, Gaudi, TPU, Apple.
_FOREIGN_ONLY = ("npu::", "hpu::", "torch_hpu", "xla::", "aten::_mps_", "aten::mps_", "mps::")
# Names that occur only for operators on the CPU, or for collectives between CPUs.
_CPU_ONLY = re.compile(r"^aten::mkldnn_|^mkldnn::|^onednn::|_for_cpu$|^gloo:")
# On a CPU or a supported device, aten::linear calls one of these operators. Apple's MPS has a kernel of its own for
# aten::linear (aten/src/ATen/native/native_functions.yaml).
_PRODUCTS = re.compile(r"mm|matmul|dot|mkldnn|onednn|xnnpack|sparse|::mv$|_linear")
_CPU_DEVICE_TYPE = 0
# The process names in files of the older profiler (torch/autograd/profiler_util.py, export_chrome_trace).
_AUTOGRAD_PROCESSES = {"CPU functions", "CUDA functions"}
MIN_JUDGED_STEPS = 2
PROFILER_COST_SHARE = 0.10
# torch.profiler writes a file for each process; none of 110 public and own recordings has operators of another one.
OTHER_PROCESS = 0.05


@dataclass(frozen=True)
class Defect:
    """A defect of a recording. `code` is the id of the kind of defect. A recording with a `fatal` defect cannot be
    judged. `facts` has the figures of the defect by name: shares are 0 to 1, times are in ns."""

    code: str
    fatal: bool
    facts: Mapping[str, float | str] = field(default_factory=dict)


def fatal_defect(trace: Trace, steps: Steps | None) -> Defect | None:
    """Returns the fatal defect of `trace`, or None if the recording can be judged. `steps` are the steps of the trace,
    or None if the trace has no steps."""
    written = _other_writer(trace)
    if written is not None:
        return written
    foreign = int((trace.events.kind == Kind.FOREIGN_DEVICE).sum())
    ops, launches = len(trace.device_ops), len(trace.calls.of(Role.LAUNCH))
    operators = len(trace.rows(Kind.CPU_OP))
    unsupported = not ops and (_any_starts_with(trace, _FOREIGN_ONLY) or _linear_without_product(trace))
    if unsupported or (foreign and not (ops and len(trace.calls))):
        name = trace.header.devices[0].name if trace.header.devices else ""
        return Defect("unsupported_device", True, {"events": foreign, "device": name or "another accelerator"})
    launched = launches >= MIN_DEVICE_OPS or (launches and operators <= OPERATORS_PER_LAUNCH * launches)
    launched = launched or (trace.events.kind == Kind.COUNTER_RANGE).any()
    if not ops and (launched or _device_only_operators(trace) or _device_not_recorded(trace, operators)):
        return Defect("kernels_not_recorded", True, {"launches": launches, "kind": "launched" if launches else ""})
    too_few = ops < MIN_DEVICE_OPS and not _large_kernels(trace, steps) if ops else operators < MIN_OPERATORS
    if steps is None or steps.end <= steps.begin or too_few:
        return Defect("insufficient_data", True, {"device_ops": ops, "operators": operators})
    return None


def _other_writer(trace: Trace) -> Defect | None:
    """Returns the defect of a file that torch.profiler did not write, or None if torch.profiler may have written the
    file."""
    if not len(trace.events) or (trace.events.kind != Kind.OTHER).any():
        return None
    events = {"events": len(trace.events)}
    if _AUTOGRAD_PROCESSES & {thread.process for thread in trace.threads}:
        return Defect("autograd_profiler", True, events)
    header = trace.header
    known = header.devices or header.versions or header.context or header.stacks_recorded or header.more_recorded
    return None if known else Defect("other_program", True, events)


def _large_kernels(trace: Trace, steps: Steps | None) -> bool:
    """Returns True if at least MIN_LARGE_KERNELS kernels that fill the device, each of at least LARGE_KERNEL_NS, keep
    the device busy for more than BUSY_SHARE of the window."""
    if steps is None:
        return False
    ops = trace.device_ops
    large = ops.take(
        np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING))
        & (ops.end - ops.start >= LARGE_KERNEL_NS)
        & ~underfilled(ops, trace.multiprocessors)
    )
    busy = clip(union(large.start, large.end), steps.begin, steps.end).total()
    return len(large) >= MIN_LARGE_KERNELS and busy > BUSY_SHARE * (steps.end - steps.begin)


DEBUGGING_AIDS = {
    "launch_blocking": "CUDA_LAUNCH_BLOCKING=1 (each launch waits for its kernel)",
    "dev_mode": "Python's development mode, -X dev (no slower in four small trainings than two equal runs differ)",
    "tracer": "a debugger, coverage tool or profiler of Python (1.1 to 1.5 times as long in four small trainings)",
    "nvtx": "torch.autograd.profiler.emit_nvtx (a range for each operator; not measured)",
    "debug_build": "a debug build of torch (its code is not optimised; not measured)",
}
"""What can slow a training down and is meant for debugging, by the key that the monitor records, with its cost: torch
2.13, one core of an AMD EPYC, where two equal runs differed by up to 1.3 times. TORCH_SHOW_CPP_STACKTRACES is left out:
it costs time only where torch raises an error."""
DETERMINISTIC = "torch.use_deterministic_algorithms(True) (no slower in four trainings on a CPU; not measured on GPUs)"


def debugging_defects(facts: Mapping[str, object]) -> Iterator[Defect]:
    """Yields the defect that debugging aids or deterministic algorithms were on, from the facts of the process, which
    are untrusted."""
    recorded = facts.get("debugging")
    names = [text for key, text in DEBUGGING_AIDS.items() if isinstance(recorded, list) and key in recorded]
    if facts.get("deterministic_algorithms") is True:
        names.append(DETERMINISTIC)
    if names:
        yield Defect("debugging_aids", False, {"aids": ", ".join(names)})


def damage_of(trace: Trace) -> Iterator[Defect]:
    """Yields the defects of a damaged file: a truncated file, and events that could not be read."""
    if trace.truncated:
        yield Defect("truncated", False, {"how": trace.truncated})
    reasons = trace.lost - Counter({CUT_OFF: 1} if trace.truncated else {})  # the last event of a truncated file
    if reasons[TWICE]:
        yield Defect("events_twice", False, {"events": reasons.pop(TWICE)})
    lost = sum(reasons.values())
    if lost:
        reason = reasons.most_common(1)[0][0]
        yield Defect("events_lost", False, {"events": lost, "kept": len(trace.events), "reason": reason})


def defects_of(trace: Trace, steps: Steps) -> Iterator[Defect]:
    """Yields the defects of the trace file that are not fatal. `trace` must have no fatal defect."""
    yield from damage_of(trace)
    processes = processes_of(trace)
    if processes > 1:
        yield Defect("several_processes", False, {"processes": processes})
    yield from debugging_defects(trace.header.context)
    if steps.damaged:
        yield Defect("damaged_steps", False, {"steps": steps.damaged})
    lost = launches_without_work(trace, steps)
    if lost > LOST_KERNELS_SHARE:
        yield Defect("kernels_lost", False, {"share": lost})
    if trace.clock_shift_ns:
        yield Defect("device_clock_moved", False, {"time": float(trace.clock_shift_ns)})
    early = _kernels_before_launch(trace)
    if early > EARLY_SHARE:
        yield Defect("kernels_before_launch", False, {"share": early})
    if len(steps) < MIN_JUDGED_STEPS:
        yield Defect("few_steps", False, {"steps": len(steps)})
    overhead = _estimated_overhead(trace, steps) / (steps.end - steps.begin)
    if overhead > PROFILER_COST_SHARE:
        yield Defect("profiler_inflated", False, {"share": overhead, "kind": profiler_setup(trace)})


def processes_of(trace: Trace) -> int:
    """Returns the number of processes whose operators are in the file, without those that have less than OTHER_PROCESS
    of them."""
    rows = trace.rows(Kind.CPU_OP)
    counts: Counter[str] = Counter()
    for thread, count in enumerate(np.bincount(trace.events.thread[rows]).tolist()):
        counts[trace.threads[thread].process] += count
    return sum(count >= OTHER_PROCESS * max(len(rows), 1) for count in counts.values())


def _kernels_before_launch(trace: Trace) -> float:
    """Returns the share (0 to 1) of the launched device operations that begin before the call that launches them."""
    ops = trace.device_ops
    rows = np.flatnonzero(ops.launched)
    return float((ops.start[rows] < trace.calls.start[ops.call[rows]]).mean()) if len(rows) else 0.0


def profiler_setup(trace: Trace) -> str:
    """Returns the kind of profiler setup, which shows which options could be turned off.

    The kinds are `monitor` (the monitor recorded the trace), `stacks` (with Python stacks), `no_stacks` (with memory or
    shapes, but no stacks) and `cheapest` (none of these).
    """
    header = trace.header
    if "capture_reason" in header.context:
        return "monitor"
    return "stacks" if header.stacks_recorded else "no_stacks" if header.more_recorded else "cheapest"


def work_ran_on_cpu(trace: Trace) -> bool:
    """Returns True if a device is present, all recorded work ran on the CPU, and work on the device would have been
    recorded."""
    shown = len(trace.calls) > 0 or _memory_of_cpu_alone(trace)
    return (
        bool(trace.header.devices) and shown and not len(trace.all_device_ops) and not len(trace.calls.of(Role.LAUNCH))
    )


def _device_only_operators(trace: Trace) -> bool:
    """Returns True if the trace has names of operators or a backend that occur only if work runs on an accelerator."""
    return trace.header.backend == "nccl" or _any_starts_with(trace, _DEVICE_ONLY)


def _device_not_recorded(trace: Trace, operators: int) -> bool:
    """Returns True if a device is present but was not recorded, and nothing proves that the work ran on the CPU.
    `operators` is the number of recorded operators.

    With activities=[ProfilerActivity.CPU], a training on the device records only host operators. Their times are those
    of launching the work, not of the work itself.
    """
    if not trace.header.devices or len(trace.calls) or operators < MIN_OPERATORS or _memory_of_cpu_alone(trace):
        return False
    column = trace.events.name[trace.rows(Kind.CPU_OP, Kind.ANNOTATION)]
    return not name_matches(trace.names, column, lambda name: bool(_CPU_ONLY.search(name))).any()


def _memory_of_cpu_alone(trace: Trace) -> bool:
    """Returns True if at least MIN_OPERATORS allocations were recorded, and all of them are on the CPU.
    profile_memory=True records the allocations of every device."""
    memory = trace.memory
    return len(memory) >= MIN_OPERATORS and bool((memory.device_type == _CPU_DEVICE_TYPE).all())


def _linear_without_product(trace: Trace) -> bool:
    """Returns True if linear layers and the operators inside of them were recorded, and none of these operators is a
    matrix product. This is the case on accelerators that are not supported and have a kernel of their own for linear
    layers."""
    rows = trace.rows(Kind.CPU_OP)
    events, column = trace.events, trace.events.name[rows]
    is_linear = name_matches(trace.names, column, "aten::linear".__eq__)
    if is_linear.sum() < MIN_OPERATORS or len(trace.calls):
        return False
    linear, others = rows[is_linear], rows[~is_linear]
    inside = others[union(events.start[linear], events.end[linear]).contains(events.start[others])]
    products = name_matches(trace.names, events.name[inside], lambda name: bool(_PRODUCTS.search(name)))
    return len(inside) >= MIN_OPERATORS and not products.any()


def _any_starts_with(trace: Trace, prefixes: tuple[str, ...]) -> bool:
    """Returns True if the name of an operator or annotation starts with one of `prefixes`."""
    column = trace.events.name[trace.rows(Kind.CPU_OP, Kind.ANNOTATION)]
    return bool(name_matches(trace.names, column, lambda name: name.startswith(prefixes)).any())


def _estimated_overhead(trace: Trace, steps: Steps) -> float:
    """Returns the estimated time in ns that the profiler takes in the window, on the thread where it takes most. The
    estimate is the sum over operators, frames and calls: their number x the cost of recording one of them."""
    events = trace.events
    inside = (events.start >= steps.begin) & (events.start < steps.end)
    cost = np.zeros(len(trace.threads) or 1)
    for kind, price in ((Kind.CPU_OP, NS_PER_OPERATOR), (Kind.PYTHON, NS_PER_FRAME), (Kind.CALL, NS_PER_CALL)):
        rows = inside & (events.kind == kind)
        cost += price * np.bincount(events.thread[rows], minlength=len(cost))
    return float(cost.max())
