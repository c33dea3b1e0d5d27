"""Facts about the training process that a trace does not hold: threads, cores, device, torch.

Record them with a trace by calling this while the profiler is recording (before its active phase torch ignores it):

    prof.add_metadata_json("tb_bottleneck", as_metadata())
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.facts import device_key
from tb_bottleneck.monitor.facts.cpu import cpu_name, usable_cores

SCHEMA = 1

_log = logging.getLogger(__name__)


def as_metadata(more: Mapping[str, object] | None = None) -> str:
    """The facts as JSON text, `{"schema": 1, "context": {...}}`, with `more` JSON-ready facts. It never raises where
    those are."""
    return json.dumps({"schema": SCHEMA, "context": {**collect(), **(more or {})}}, allow_nan=False)


def collect() -> dict[str, object]:
    """JSON-ready facts by name; a fact that cannot be had is left out. It never raises and never imports torch.

    Nothing here names a person, a host, a job or a path, and no environment variable is told beyond the three counts.
    """
    facts: dict[str, object] = {}
    for name, look in _FACTS.items():
        try:
            value = look()
        except Exception:  # the training outranks every fact, and torch or the OS may raise anything here
            _log.debug("the fact %r could not be had, it is left out", name, exc_info=True)
            continue
        if value is not None:
            facts[name] = value
    return facts


def _torch() -> ModuleType:
    return sys.modules["torch"]


def _device_kind() -> str | None:
    torch = _torch()
    if torch.cuda.is_initialized():
        return "rocm" if torch.version.hip else "cuda"
    if torch.xpu.is_initialized():
        return "xpu"
    # Whether Metal is in use cannot be asked, so where it is there the kind stays unknown.
    return None if torch.backends.mps.is_available() else "cpu"


def _device_name() -> str | None:
    kind = _device_kind()
    if kind == "cpu":
        return cpu_name()
    if kind in ("cuda", "rocm"):
        return str(_torch().cuda.get_device_name(own_gpu(_torch())))
    return str(_torch().xpu.get_device_name()) if kind == "xpu" else None


def _count_in_environment(name: str) -> int | None:
    # OMP_NUM_THREADS may hold a list, one count per nesting level; the outermost is the one that matters.
    text = os.environ.get(name, "").split(",")[0].strip()
    return int(text) if text.isascii() and text.isdecimal() else None


_FACTS: dict[str, Callable[[], object]] = {
    "torch": lambda: str(_torch().__version__),
    "torch_threads": lambda: int(_torch().get_num_threads()),
    "torch_interop_threads": lambda: int(_torch().get_num_interop_threads()),
    "cores": usable_cores,
    "machine_cores": os.cpu_count,
    "device_kind": _device_kind,
    "device_name": _device_name,
    "omp_num_threads": lambda: _count_in_environment("OMP_NUM_THREADS"),
    "mkl_num_threads": lambda: _count_in_environment("MKL_NUM_THREADS"),
    "local_world_size": lambda: _count_in_environment("LOCAL_WORLD_SIZE"),
    "calibration": lambda: device_key.calibration(),
}
