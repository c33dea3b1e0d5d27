"""Who a recorded Python frame belongs to, by its name: the user, an installed package, torch, or Python itself.

The profiler names a frame `file.py(line): function`. It cuts the path at the import path of the training process, so
files of the program and of installed packages both start with the name of a module or a package.
"""

import re
import sys
from enum import Enum
from functools import lru_cache

from tb_bottleneck.knowledge.catalogue import installed_packages

# No training runs these modules of the standard library, and programs have files and folders with these names.
_PROGRAM_NAMES = {"profile", "test", "trace", "code"}
_STANDARD_LIBRARY = sys.stdlib_module_names - _PROGRAM_NAMES
_STANDARD_LIBRARY_FOLDER = re.compile(r"/lib/python3(?:\.\d+)?/(?!.*(?:site|dist)-packages/)", re.IGNORECASE)
_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/([^/.(]*)")
# The frames of this package enclose those of the program, wherever it is installed.
_OWN = re.compile(r"(?:^|/)tb_bottleneck/(?:monitor/|commands/|tools/|__main__\.py)")
# Code that torch.compile has written (pytorch torch/_inductor/runtime/cache_dir_utils.py).
_GENERATED = re.compile(r"/torchinductor_|/torch_compile_debug/|/inductor_cache/")
_OBJECT = re.compile(r"(?: of pybind11_builtins\.\S+ object)? at 0x[0-9a-fA-F]+(?=>$)")
_FRAME = re.compile(r"^(.+)\((\d{1,9})\): (.+)$", re.DOTALL)


class FrameOwner(Enum):
    """Owners of frames. NONE: the row is no Python function of a file, as built-in functions and modules of a model."""

    USER = "user"
    PACKAGE = "package"
    TORCH = "torch"
    PYTHON = "python"
    NONE = "none"


@lru_cache(maxsize=100_000)
def frame_owner(frame: str) -> FrameOwner:
    """Returns the owner of the frame."""
    if ".py(" not in frame or frame.startswith("<"):
        return FrameOwner.NONE
    path = frame.replace("\\", "/")
    installed = _INSTALLED.search(path)
    first, folder, _ = path.split(".py(", 1)[0].partition("/")
    top = installed[1] if installed else first
    if top == "torch" or _GENERATED.search(path):
        return FrameOwner.TORCH
    if installed or first + (folder or ".py") in installed_packages() or _OWN.search(path):
        return FrameOwner.PACKAGE
    if top in _STANDARD_LIBRARY or top == "site" or _STANDARD_LIBRARY_FOLDER.search(path):
        return FrameOwner.PYTHON
    return FrameOwner.USER


def is_user_frame(frame: str) -> bool:
    """Returns True if a Python frame is of the user's program."""
    return frame_owner(frame) is FrameOwner.USER


def is_own_frame(frame: str) -> bool:
    """Returns True if a Python frame is of this package, such as a hook of the monitor around a call of the program."""
    return frame_owner(frame) is FrameOwner.PACKAGE and _OWN.search(frame.replace("\\", "/")) is not None


def short_frame(frame: str) -> str:
    """Returns the name without addresses and pybind11's internals: `<built-in method item of Tensor object>`."""
    return _OBJECT.sub("", frame)


def frame_parts(frame: str) -> tuple[str, int, str]:
    """Returns the file, the line and the function of a frame; the name itself as the function if it has another form.

    The line is the one at which the function begins. Of functions that already ran when the recording began, it is the
    one that started the profiler, which tells nothing.
    """
    parts = _FRAME.match(frame)
    return (parts[1], int(parts[2]), parts[3]) if parts else ("", 0, frame)


def frame_without_line(frame: str) -> str:
    """Returns the frame as `file.py: function`."""
    file, _, function = frame_parts(frame)
    return f"{file}: {function}" if file else frame
