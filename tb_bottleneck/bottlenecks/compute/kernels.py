"""Measures of the kernels that run, and of the threads of a CPU run."""

from dataclasses import replace
from math import prod

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import heaviest_value
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.loader import WORKER_ITERATOR, loader_iterator
from tb_bottleneck.bottlenecks.input.loader_workers import workers_used
from tb_bottleneck.measures.trace.window_rows import device_work, in_host_steps, in_window, window_share, with_example
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps
from tb_bottleneck.trace.kernel_names import short
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.trace.table import by_thread
from tb_bottleneck.trace.trace import Trace

_NO_CONTEXT = Missing("the run's context was not recorded; tb_bottleneck.monitor.facts.process adds it to the trace")
_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")


def kernels(recording: Recording) -> Measure | Missing:
    """Number of kernels per step."""
    ops = device_work(recording, *COMPUTE_KERNELS)
    if not len(ops):
        return _NO_DEVICE
    return with_example(len(ops) / len(recording.steps), "count", "step", ops.start, ops.end)


def kernel_time(recording: Recording) -> Measure | Missing:
    """Median duration of a kernel (ns)."""
    ops = device_work(recording, *COMPUTE_KERNELS)
    if not len(ops):
        return _NO_DEVICE
    return with_example(float(np.median(ops.end - ops.start)), "ns", "call", ops.start, ops.end)


def costliest_kernel(recording: Recording) -> Measure | Missing:
    """The name of the kernel that takes the most device time, as untrusted text."""
    ops = device_work(recording, *COMPUTE_KERNELS)
    if not len(ops):
        return _NO_DEVICE
    name = heaviest_value(ops.name, ops.end - ops.start)
    return longest_call_of(recording, name, ops.take(ops.name == name))


def underfilled_share(recording: Recording) -> Measure | Missing:
    """Share of the kernels, by number, that are too small to fill the device."""
    rows = in_window(recording, *COMPUTE_KERNELS)
    if not rows.any():
        return _NO_DEVICE
    ops, small = recording.trace.device_ops.take(rows), recording.kernel_bounds.small[rows]
    examples = ops.take(small)
    share = with_example(float(small.mean()), "share", "kernels", examples.start, examples.end)
    return replace(share, count=len(ops))


def unknown_kernels(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels whose kind of work is not known from their names, operators or shapes."""
    if not recording.on_device:
        return _NO_DEVICE
    spans = recording.busy[Regime.UNEXPLAINED]
    return window_share(recording, spans.starts, spans.ends)


def longest_call_of(recording: Recording, name: int, ops: DeviceOps) -> Measure:
    """Returns the shortened name of a kernel as a measure. `name` is the index of the kernel's name, and `ops` are the
    kernel's calls. The measure's `begin` and `end` are those of the longest call."""
    longest = int(np.argmax(ops.end - ops.start))
    return text_measure(short(recording.trace.names[name]), len(ops), int(ops.start[longest]), int(ops.end[longest]))


def multiprocessors(recording: Recording) -> Measure | Missing:
    """The number of multiprocessors of the device."""
    if recording.trace.multiprocessors is None:
        return Missing("the number of multiprocessors of the device was not recorded")
    return Measure(float(recording.trace.multiprocessors), "count", "device")


def threads_per_core(recording: Recording) -> Measure | Missing:
    """Intra-op threads of torch in all processes of this machine / cores available, from the run's context (count)."""
    context = recording.trace.header.context
    threads, cores = context.get("torch_threads"), context.get("cores")
    processes = context.get("local_world_size", 1)
    usable = all(isinstance(value, int | float) and value > 0 for value in (threads, cores, processes))
    if not usable or threads is None or cores is None:
        return _NO_CONTEXT
    return Measure(threads * processes / cores, "count", "core", int(threads), source="context")


def unused_cores(recording: Recording) -> Measure | Missing:
    """Share of the available physical cores that the job's processes on this machine leave unused: no intra-op thread
    and no loader worker runs there.

    If the number of physical cores was not recorded, hyper-threads count as cores.
    """
    cores, threads = _context_number(recording, "cores"), _context_number(recording, "torch_threads")
    physical, processes = _context_number(recording, "physical_cores"), _context_number(recording, "local_world_size")
    if isinstance(cores, Missing) or isinstance(threads, Missing):
        return _NO_CONTEXT
    usable = min(cores.value, physical.value) if isinstance(physical, Measure) else cores.value
    ranks = recording.trace.header.world_size or 1  # all of them may be on this machine
    workers, iterator = workers_used(recording), loader_iterator(recording)
    if isinstance(workers, Missing) and isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR:
        return workers
    busy = threads.value + (workers.value if isinstance(workers, Measure) else 0.0)
    busy *= processes.value if isinstance(processes, Measure) else ranks
    return Measure(max(1 - busy / usable, 0.0), "share", "cores", int(threads.value), source="context")


GRAIN_SIZE = 32_768
"""Number of elements from which torch divides the work of an operator among threads (ATen/Parallel.h, GRAIN_SIZE)."""
DIVISIBLE_FLOPS = 2e6
"""Number of floating-point operations from which a contraction is divided among threads: as many as the product of two
matrices of 100 x 100 needs."""


def divisible_share(recording: Recording) -> Measure | Missing:
    """Share of the operators' time on the CPU in operators with enough work for several threads.

    Operators without recorded shapes count as having enough work.
    """
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    own = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(
                nest(events.start[each], events.end[each]).self_times()
                for each in by_thread(rows, events.thread).values()
            ),
        ]
    )
    rows = np.concatenate([np.zeros(0, np.int64), *by_thread(rows, events.thread).values()])
    kinds = np.stack((events.name[rows], events.signature[rows]))
    if not own.sum():
        return Missing("no operator ran on the CPU")
    (names, signatures), which = np.unique(kinds, axis=1, return_inverse=True)
    divisible = [_is_divisible(trace, name, signature) for name, signature in zip(names, signatures, strict=True)]
    share = own[np.array(divisible, np.bool_)[which.reshape(-1)]].sum() / own.sum()
    return Measure(float(share), "share", "operators", len(rows))


def _is_divisible(trace: Trace, name: int, signature: int) -> bool:
    """Returns True if an operator has enough work for several threads, or if its shapes are not known. `name` and
    `signature` are indices of the trace's names and signatures."""
    operands = operands_of(trace.signatures[signature]) if signature else None
    if operands is None:
        return True
    operations = flops(trace.names[name], operands.dims, operands.concrete)
    if operations:
        return operations >= DIVISIBLE_FLOPS
    shapes = [dim for dim in operands.dims if all(isinstance(size, int) for size in dim)]
    lists = [inner for dim in operands.dims for inner in dim if isinstance(inner, tuple)]
    return any(prod(shape) >= GRAIN_SIZE for shape in (*shapes, *lists) if shape)


def torch_threads(recording: Recording) -> Measure | Missing:
    """Intra-op threads of this process, from the run's context."""
    return _context_number(recording, "torch_threads")


def cores(recording: Recording) -> Measure | Missing:
    """Cores available to this process, from the run's context."""
    return _context_number(recording, "cores")


def _context_number(recording: Recording, key: str) -> Measure | Missing:
    """Returns the number `key` of the run's context as a measure."""
    value = positive(recording.trace.header.context.get(key))
    return _NO_CONTEXT if value is None else Measure(value, "count", "process", source="context")
