"""Measures of kernels that the program brings itself: in Triton, or loaded as a module of CUDA or HIP."""

import re

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import heaviest_value
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.window_rows import in_window, window_share
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS
from tb_bottleneck.trace.kernel_names import name_matches, short
from tb_bottleneck.trace.table import Bools

_MODULE_LAUNCHES = frozenset(("cuLaunchKernel", "cuLaunchKernelEx", "hipModuleLaunchKernel"))
"""Calls that launch a kernel of a loaded module, as Triton does. Kernels that are compiled into a library have another
call, but some of cuBLAS, cuDNN and MIOpen have the same."""
_PLAIN = re.compile(r"[A-Za-z_]\w*")
"""Triton's kernels have the name of their Python function. A C++ function has its types in its name."""
_OF_LIBRARIES = re.compile(
    r"triton_(?:poi|per|red|tem|for|mm|bmm)_|fused_|nvfuser|kernel\d+$"  # compilers of torch
    r"|nvjet_|sm\d+_|cudnn|cutlass|ampere_|volta_|turing_|maxwell_|Cijk_|igemm_|batched_transpose|MIOpen|attn_(?:fwd|bwd)"
)
"""Other names, from public recordings of torch 1.9 to 2.11 on NVIDIA's and AMD's devices. attn_fwd is of AOTriton, a
part of torch for ROCm."""


def is_own(name: str) -> bool:
    """Returns True if a kernel of a module with this name is not of torch or its libraries."""
    return _PLAIN.fullmatch(name) is not None and _OF_LIBRARIES.match(name) is None


def own_kernel_share(recording: Recording) -> Measure | Missing:
    """Share of the window in own kernels."""
    ops = recording.trace.device_ops.take(_own(recording))
    return window_share(recording, ops.start, ops.end) if len(ops) else Missing("no kernel is the program's own")


def own_kernel_reach(recording: Recording) -> Measure | Missing:
    """Share of the time of own kernels that they need at the device's peak or bandwidth, by the recorded shapes of
    their operators; missing if no shapes give their work."""
    own, bounds = _own(recording), recording.kernel_bounds
    ops, reached = recording.trace.device_ops.take(own), bounds.reached[own]
    took = np.where(reached > 0, ops.end - ops.start, 0).astype(np.float64)
    if not took.sum():
        return Missing("no shapes give the work of these kernels")
    return Measure(min(float((took * reached).sum() / took.sum()), 1.0), "share", "kernels", int((reached > 0).sum()))


def own_kernel_name(recording: Recording) -> Measure | Missing:
    """The name of the own kernel that takes the most time, as untrusted text."""
    ops = recording.trace.device_ops.take(_own(recording))
    if not len(ops):
        return Missing("no kernel is the program's own")
    return text_measure(short(recording.trace.names[heaviest_value(ops.name, ops.end - ops.start)]), len(ops))


@memoized
def _own(recording: Recording) -> Bools:
    trace = recording.trace
    ops, calls = trace.device_ops, trace.calls
    own = in_window(recording, *COMPUTE_KERNELS) & (ops.call >= 0)
    own[own] = name_matches(trace.names, calls.name[ops.call[own]], _MODULE_LAUNCHES.__contains__)
    own[own] = name_matches(trace.names, ops.name[own], is_own)
    return own
