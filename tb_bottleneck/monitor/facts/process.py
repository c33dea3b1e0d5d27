"""Facts about the training process that a trace does not contain: threads, cores, device, torch, git revision.

To add the facts to a trace, make this call while the profiler is recording (torch ignores the call before the active
phase):

    prof.add_metadata_json("tb_bottleneck", as_metadata())
"""

import hashlib
import json
import logging
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tb_bottleneck.monitor.accelerator import own_gpu
from tb_bottleneck.monitor.facts import device, nccl
from tb_bottleneck.monitor.facts.cpu import cpu_name, physical_cores, usable_cores
from tb_bottleneck.monitor.facts.debugging import debugging_aids

MAX_FOLDERS = 64  # maximum depth of a script in its repository
MAX_BYTES = 4 << 20  # that are read of a file: a list of packed refs of about 50,000 branches and tags
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # SHA-1, or SHA-256
_REF = re.compile(r"refs/[^\s\0]+")


@cache
def script_revision() -> str | None:
    """Returns the commit that is checked out in the repository of the training script; None if there is no repository
    or no commit.

    The commit is read from the files of the repository, without running git. Changes that were not committed are
    therefore not seen. The files are read only once, because a commit that is checked out later is not the one that
    runs.

    Raises:
        OSError: a file of the repository cannot be read.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return revision_of(Path(script).resolve().parent) if isinstance(script, str) else None


HASH_LENGTH = 12


def program_hash(path: str, arguments: Sequence[str]) -> str:
    """Returns "NAME-ARGUMENTS": a hash of the program's name and a hash of its arguments.

    Equal hashes show that two recordings are of the same program. The hashes reveal neither the path nor the arguments.
    The program's name is the file name of the script or module in `path`, without folder and suffix; for `__main__.py`,
    it is the name of the folder.
    """
    program = Path(path)
    name = program.parent.name if program.stem == "__main__" else program.stem
    texts = (name, "\0".join(arguments))
    return "-".join(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:HASH_LENGTH] for text in texts)


def revision_of(folder: Path) -> str | None:
    """Returns the commit that is checked out in the repository that contains `folder`; None if there is no repository
    or no commit. Raises OSError if a file of the repository cannot be read."""
    for candidate in [folder, *folder.parents][:MAX_FOLDERS]:
        git = candidate / ".git"
        if git.is_dir():
            return _head(git)
        if git.is_file():  # of a work tree or a submodule: the file has the path of the folder with the data
            target = _text(git).removeprefix("gitdir:").strip()
            return _head(candidate / target)
    return None


def _head(git: Path) -> str | None:
    head = _text(git / "HEAD").strip()
    if _HASH.fullmatch(head):
        return head
    name = head.removeprefix("ref:").strip()
    if not _REF.fullmatch(name) or ".." in name:
        return None
    common = git / _text(git / "commondir").strip() if (git / "commondir").is_file() else git
    for folder in (git, common):
        if (folder / name).is_file():
            found = _text(folder / name).strip()
            return found if _HASH.fullmatch(found) else None
    packed = _text(common / "packed-refs") if (common / "packed-refs").is_file() else ""
    lines = (line.split(" ") for line in packed.splitlines())
    return next((line[0] for line in lines if line[1:] == [name] and _HASH.fullmatch(line[0])), None)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace")


_log = logging.getLogger(__name__)


def collect_facts(getters: Mapping[str, Callable[..., Any]], *arguments: object) -> dict[str, object]:
    """Calls each function in `getters` with `arguments`. Returns the results that are not None, by name.

    Never raises: if a function fails, its result is left out."""
    facts: dict[str, object] = {}
    for name, get in getters.items():
        try:
            value = get(*arguments)
        except Exception:  # a fact must never disturb the training, and torch or the OS may raise anything
            _log.debug("the fact %r is not available", name, exc_info=True)
            continue
        if value is not None:
            facts[name] = value
    return facts


METADATA_SCHEMA = 1


def as_metadata(more: Mapping[str, object] | None = None) -> str:
    """Returns the facts about this process and the facts in `more` as JSON text, `{"schema": 1, "context": {...}}`.

    Raises TypeError or ValueError if `more` cannot be written as JSON."""
    return metadata_text({**collect(), **(more or {})})


def metadata_text(facts: Mapping[str, object]) -> str:
    """Returns `facts` as JSON text in the form of a trace's metadata. Raises TypeError or ValueError if `facts` cannot
    be written as JSON."""
    return json.dumps({"schema": METADATA_SCHEMA, "context": facts}, allow_nan=False)


def collect() -> dict[str, object]:
    """Returns the facts about this process by name, as JSON values. Unavailable facts are left out. Never raises and
    never imports torch.

    No fact contains the name of a person, host or job, or a path. Three counts and CUDA_LAUNCH_BLOCKING come from the
    environment."""
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
    # OMP_NUM_THREADS may be a list with one count per level of nested parallel regions; the outermost level matters.
    text = os.environ.get(name, "").split(",")[0].strip()
    return int(text) if text.isascii() and text.isdecimal() else None


def _blas() -> str | None:
    """Returns the BLAS library that torch was built with, such as mkl or open; None if torch does not report one."""
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
    "calibration": lambda: device.calibration(),
    "debugging": debugging_aids,
    "nccl": nccl.nccl_log,
    "active_ports": lambda: nccl.active_ports(),
    "git_revision": script_revision,
    "program": lambda: program_hash(sys.argv[0], sys.argv[1:]) if sys.argv[:1] not in ([], [""], ["-c"]) else None,
}
