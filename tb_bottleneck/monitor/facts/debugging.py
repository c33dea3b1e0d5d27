"""Facts about debugging aids that are on in the training process and that slow it down."""

import os
import sys
from typing import Any

_MONITORING_TOOLS = 3
"""Ids of sys.monitoring below this number are those of debuggers, coverage tools and profilers (since Python 3.12)."""


NONE = "none"


def debugging_aids() -> list[str]:
    """Returns the keys of the aids that are on (quality/trace_defects.py), or [NONE], so that a comparison shows the
    difference. Call it on the thread of the training: a tracer belongs to one thread."""
    torch: Any = sys.modules.get("torch")
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(number) for number in range(_MONITORING_TOOLS)] if monitoring is not None else []
    on = {
        "launch_blocking": os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" and torch is not None and _uses_cuda(torch),
        "dev_mode": sys.flags.dev_mode,
        "tracer": sys.gettrace() is not None or any(tools) or is_profiled(),
        "nvtx": torch is not None and torch._C._autograd._profiler_type().name == "NVTX",
        "debug_build": torch is not None and bool(torch.version.debug),
    }
    return [name for name, is_on in on.items() if is_on] or [NONE]


def is_profiled() -> bool:
    """Returns True if a profiler of Python, such as cProfile, watches this thread. torch.profiler, which sets a
    TraceContext while it records stacks, is none."""
    profile = sys.getprofile()
    return profile is not None and type(profile).__name__ != "TraceContext"


def _uses_cuda(torch: Any) -> bool:
    return bool(torch.cuda.is_initialized())
