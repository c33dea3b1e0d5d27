"""Measures of torch.autograd's anomaly detection, which is meant for debugging.

In the forward pass, it stores a Python traceback for each operator with a gradient; in the backward pass, it checks
each gradient for NaN (torch/csrc/autograd/python_anomaly_mode.cpp and engine.cpp).
"""

import re

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, clip, union
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures.trace.window_rows import in_host_steps
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind

_STORES = re.compile(r"torch/fx/traceback\.py(\(\d+\))?: format_stack")
_CHECKS = frozenset({"aten::isnan", "aten::_is_any_true"})
MIN_CHECKS = 8
"""Checks per step from which on anomaly detection counts as on, if the monitor did not record whether it is. A choice:
other programs rarely call aten::_is_any_true."""


def anomaly_share(recording: Recording) -> Measure | Missing:
    """Share of the window that anomaly detection takes on the host; missing if it is off. Without Python frames, only
    the checks are included."""
    spans = anomaly_detection(recording)
    if not len(spans):
        return Missing("anomaly detection is off")
    steps = recording.steps
    return Measure(
        clip(spans, steps.begin, steps.end).total() / recording.account.window, "share", "window", len(spans)
    )


@memoized
def anomaly_detection(recording: Recording) -> Spans:
    """Returns the time of the tracebacks and checks of anomaly detection; none if it is off."""
    trace, events = recording.trace, recording.trace.events
    if not _CHECKS.intersection(trace.names):  # usual; the search below reads all operators and frames
        return union((), ())
    rows = trace.rows(Kind.CPU_OP, Kind.PYTHON)
    rows = rows[in_host_steps(recording, events.start[rows])]
    names = events.name[rows]
    checks = name_matches(trace.names, names, _CHECKS.__contains__)
    stores = name_matches(trace.names, names, lambda name: _STORES.match(name) is not None)
    known = trace.header.context.get("anomaly_detection")
    if known is False or (known is not True and np.count_nonzero(checks) < 2 * MIN_CHECKS * len(recording.steps)):
        return union((), ())
    rows = rows[checks | stores]
    return union(events.start[rows], events.end[rows])
