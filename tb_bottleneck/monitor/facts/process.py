"""Facts about the training process that a trace does not contain: threads, cores, device, torch.

To add them to a trace, call this while the profiler is recording (torch ignores it before the active phase):

    prof.add_metadata_json("tb_bottleneck", as_metadata())
"""

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.facts import device_key
from tb_bottleneck.monitor.facts.collector import collect_facts
from tb_bottleneck.monitor.facts.cpu import cpu_name, physical_cores, usable_cores
from tb_bottleneck.monitor.facts.git_revision import script_revision

METADATA_SCHEMA = 1


def as_metadata(more: Mapping[str, object] | None = None) -> str:
    """Returns the facts and `more` as JSON text, `{"schema": 1, "context": {...}}`. Raises only if `more` is not
    JSON-ready."""
    return metadata_text({**collect(), **(more or {})})


def metadata_text(facts: Mapping[str, object]) -> str:
    """Returns facts as JSON text in the form of a trace's metadata. Raises if they are not JSON-ready."""
    return json.dumps({"schema": METADATA_SCHEMA, "context": facts}, allow_nan=False)


def collect() -> dict[str, object]:
    """Returns JSON-ready facts by name, without unavailable ones. Never raises and never imports torch.

    No fact contains the name of a person, host, job or path. Of the environment, only three counts are read.
    """
    return collect_facts(_FACTS)


def _torch() -> ModuleType:
    return sys.modules["torch"]


def _device_kind() -> str | None:
    torch = _torch()
    if torch.cuda.is_initialized():
        return "rocm" if torch.version.hip else "cuda"
    if torch.xpu.is_initialized():
        return "xpu"
    # torch does not report whether Metal is in use, so the kind is unknown if it is available.
    return None if torch.backends.mps.is_available() else "cpu"


def _device_name() -> str | None:
    kind = _device_kind()
    if kind == "cpu":
        return cpu_name()
    if kind in ("cuda", "rocm"):
        return str(_torch().cuda.get_device_name(own_gpu(_torch())))
    return str(_torch().xpu.get_device_name()) if kind == "xpu" else None


def _count_in_environment(name: str) -> int | None:
    # OMP_NUM_THREADS may be a list with one count per nesting level; the outermost one matters.
    text = os.environ.get(name, "").split(",")[0].strip()
    return int(text) if text.isascii() and text.isdecimal() else None


def _blas() -> str | None:
    """Returns the library of matrix products that torch was built with, such as mkl or open."""
    found = re.search(r"\bBLAS_INFO=(\w+)", _torch().__config__.show())
    return found[1] if found else None


_FACTS: dict[str, Callable[[], object]] = {
    "os": lambda: platform.system() or None,
    "python": platform.python_version,
    "torch_blas": _blas,
    "torch": lambda: str(_torch().__version__),
    "torch_threads": lambda: int(_torch().get_num_threads()),
    "torch_interop_threads": lambda: int(_torch().get_num_interop_threads()),
    "cores": usable_cores,
    "physical_cores": physical_cores,
    "machine_cores": os.cpu_count,
    "device_kind": _device_kind,
    "device_name": _device_name,
    "processor": cpu_name,
    "omp_num_threads": lambda: _count_in_environment("OMP_NUM_THREADS"),
    "mkl_num_threads": lambda: _count_in_environment("MKL_NUM_THREADS"),
    "local_world_size": lambda: _count_in_environment("LOCAL_WORLD_SIZE"),
    "calibration": lambda: device_key.calibration(),
    "git_revision": script_revision,
}
