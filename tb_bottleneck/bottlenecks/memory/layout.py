"""Measures of convolutions on matrix units whose tensors are in the layout NCHW.

Matrix units take NHWC (channels last). For tensors in NCHW, cuDNN converts the layout before and after a convolution,
and batch norm uses kernels for NCHW.
"""

import re

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures.trace.window_rows import device_work, window_share
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps, Work
from tb_bottleneck.trace.kernel_names import name_matches

# cuDNN's kernels, as recorded on an H100 with cuDNN 9 (torch 2.11) and on a V100 and T4 with cuDNN 7 and 8; MIOpen's.
_CONVERSION = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose_", re.IGNORECASE)
# torch's kernels (pytorch aten/src/ATen/native/cuda/Normalization.cuh) and those of cuDNN; those for NHWC have
# channels_last or NHWC in their names.
_NORM = re.compile(
    r"batch_norm_(?:collect_statistics|transform_input|backward(?:_reduce|_elemt)?)_kernel|bn_(?:fw|bw)_\w*"
)
NORM_LEFT = 0.67
"""Time of batch norm in NHWC / its time in NCHW. Of a ResNet-50 with bf16 on an H100 (torch 2.11, 96 images),
conversions took 5.1 of 46.0 ms and batch norm 23.3 ms; channels_last brought 33.2 ms, so it saved 7.7 ms of batch
norm."""
_LAST = re.compile(r"channels_last|nhwc", re.IGNORECASE)


def is_conversion(name: str) -> bool:
    """Returns True if the kernel `name` converts between NCHW and NHWC."""
    return _CONVERSION.search(name) is not None


def is_norm_in_nchw(name: str) -> bool:
    """Returns True if the kernel `name` computes batch norm on tensors in NCHW."""
    return _NORM.search(name) is not None and _LAST.search(name) is None


def layout_conversions(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels that convert between NCHW and NHWC."""
    ops = _kernels(recording)
    found = ops.take(name_matches(recording.trace.names, ops.name, is_conversion))
    return window_share(recording, found.start, found.end) if len(found) else Missing("no kernel converts the layout")


def norms_in_nchw(recording: Recording) -> Measure | Missing:
    """Share of the window in batch-norm kernels for NCHW."""
    ops = _kernels(recording)
    found = ops.take(name_matches(recording.trace.names, ops.name, is_norm_in_nchw))
    return window_share(recording, found.start, found.end) if len(found) else Missing("no batch norm in NCHW")


@memoized
def _kernels(recording: Recording) -> DeviceOps:
    return device_work(recording, *(Work(work) for work in COMPUTE_KERNELS))
