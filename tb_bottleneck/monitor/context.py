"""Facts about the training process that a trace does not hold: threads, cores, device, torch.

Record them with a trace by calling this while the profiler is recording (before its active phase torch ignores it):

    prof.add_metadata_json("tb_bottleneck", as_metadata())
"""

import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.groups import cpu_groups

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


def usable_cores(root: Path = Path("/")) -> float:
    """Cores this process may really use: its affinity, or its cgroup's CPU quota where that is less.

    `root` is where `proc/` and `sys/` lie. A quota may be a fraction of a core; whole numbers are returned as int.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min([float(allowed), *cgroup_quotas(root)])
    return int(cores) if cores.is_integer() else round(cores, 2)


def cgroup_quotas(root: Path = Path("/")) -> Iterator[float]:
    """The CPU quotas in cores that hold for this process: its own cgroup's and every parent's, versions 2 and 1."""
    for folder in cpu_groups(root):
        for read in (_quota_v2, _quota_v1):
            try:
                quota = read(folder)
            except (OSError, ValueError):
                continue  # this version has no quota here
            if math.isfinite(quota) and quota > 0:
                yield quota


def _quota_v2(folder: Path) -> float:
    quota, period = (folder / "cpu.max").read_text().split()
    return math.inf if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    period = int((folder / "cpu.cfs_period_us").read_text())
    return math.inf if quota < 0 or period <= 0 else quota / period


def cpu_name(root: Path = Path("/")) -> str | None:
    """The processor's model name as the kernel tells it; None where it does not (other systems, some ARM boards)."""
    for line in (root / "proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return None


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


def _calibration() -> dict[str, float] | None:
    # Imported here because what it is of is told by facts of this file.
    from tb_bottleneck.monitor.identity import calibration

    return calibration()


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
    "calibration": _calibration,
}
