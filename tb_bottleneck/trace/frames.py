"""Reads the names of recorded Python frames (calls of functions): who owns a frame, and what its line number means.

The profiler names a frame `file.py(line): function`. It removes the import path of the training process from the path
of the file, so files of the program and of installed packages both start with the name of a module or a package.
"""

import re
import sys
from enum import Enum
from functools import lru_cache

import numpy as np

from tb_bottleneck.knowledge.catalogue import installed_packages
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import MODULE, Kind
from tb_bottleneck.trace.table import Bools, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

# The number of an instance (Linear_3), or of an entry of a list (layers.3); not a digit in a name (Conv2d).
_NUMBER = re.compile(r"(?<=[_.])\d+(?=$|\.|\s)")


def module_name(name: str) -> str:
    """Returns the name of a model's module without the prefix `nn.Module: `.

    Names that the profiler records look like `Linear_3`. Names that the monitor records look like `encoder.layers.3`.
    """
    return name.removeprefix(MODULE)


def merged_module(name: str) -> str:
    """Returns the module name with `*` in place of each number, so that all layers of a stack have one name.

    `encoder.layers.3` becomes `encoder.layers.*`.
    """
    return _NUMBER.sub("*", module_name(name))


# No training runs these modules of the standard library, and programs have files and folders with these names.
_PROGRAM_NAMES = {"profile", "test", "trace", "code"}
_STANDARD_LIBRARY = sys.stdlib_module_names - _PROGRAM_NAMES
_STANDARD_LIBRARY_FOLDER = re.compile(r"/lib/python3(?:\.\d+)?/(?!.*(?:site|dist)-packages/)", re.IGNORECASE)
_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/([^/.(]*)")
# The frames of this package enclose those of the program, wherever it is installed.
_OWN = re.compile(r"(?:^|/)tb_bottleneck/(?:monitor/|commands/|trial/|doctor/|__main__\.py)")
# Code that torch.compile has written (pytorch torch/_inductor/runtime/cache_dir_utils.py).
_GENERATED = re.compile(r"/torchinductor_|/torch_compile_debug/|/inductor_cache/")
_OBJECT = re.compile(r"(?: of pybind11_builtins\.\S+ object)? at 0x[0-9a-fA-F]+(?=>$)")
_FRAME = re.compile(r"^(.+)\((\d{1,9})\): (.+)$", re.DOTALL)


class FrameOwner(Enum):
    """Owners of frames: the user, an installed package, torch, or Python itself.

    NONE means that the name is not that of a Python function in a file, but of a built-in function or a model's module.
    """

    USER = "user"
    PACKAGE = "package"
    TORCH = "torch"
    PYTHON = "python"
    NONE = "none"


@lru_cache(maxsize=100_000)
def frame_owner(frame: str) -> FrameOwner:
    """Returns the owner of the frame with the name `frame`. The path of the file decides the owner."""
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
    """Returns True if the frame with the name `frame` belongs to the user's program."""
    return frame_owner(frame) is FrameOwner.USER


def is_own_frame(frame: str) -> bool:
    """Returns True if the function of the frame is in this package, such as a hook of the monitor."""
    return frame_owner(frame) is FrameOwner.PACKAGE and _OWN.search(frame.replace("\\", "/")) is not None


def short_frame(frame: str) -> str:
    """Returns the name `frame` without addresses of objects and without names of internal classes of pybind11.

    `<built-in method item of Tensor object at 0x7f00>` becomes `<built-in method item of Tensor object>`.
    """
    return _OBJECT.sub("", frame)


def frame_parts(frame: str) -> tuple[str, int, str]:
    """Returns (file, line, function) of a frame, or ("", 0, frame) if `frame` is not `file.py(line): function`.

    The line is the first line of the function. But if the function already ran when the recording began, it is the line
    that ran at this time (see `already_running_frames`).
    """
    parts = _FRAME.match(frame)
    return (parts[1], int(parts[2]), parts[3]) if parts else ("", 0, frame)


def frame_without_line(frame: str) -> str:
    """Returns the name of the frame as `file.py: function`; `frame` itself if it is not `file.py(line): function`."""
    file, _, function = frame_parts(frame)
    return f"{file}: {function}" if file else frame


MAX_PROGRAM = 200  # characters of the name of a program's file


def program_file(trace: Trace) -> str:
    """Returns the file that Python runs, as its frames name it, which is the file of the longest call of module code in
    the user's program; empty if none was recorded. The name is untrusted text."""
    names = [at for at, name in enumerate(trace.names) if name.endswith(": <module>") and is_user_frame(name)]
    if not names:
        return ""
    events, rows = trace.events, trace.rows(Kind.PYTHON)
    rows = rows[np.isin(events.name[rows], names)]
    if not len(rows):
        return ""
    longest = rows[np.argmax(events.end[rows] - events.start[rows])]
    file = frame_parts(trace.names[events.name[longest]])[0]
    is_option = file.startswith("-")  # Python would take it for one in a command that a user copies
    return file if file.isprintable() and len(file) <= MAX_PROGRAM and not is_option else ""


# When a recording begins, the profiler first records the functions that are already running, 1 to 6 us after one
# another, before other events of the host (one public recording has a launch 13 us before them).
_ONE_GO_NS = 20_000
# Deeper stacks are rare, and a thread may have millions of frames.
_USUAL_DEPTH = 1024


def already_running_frames(trace: Trace) -> Bools:
    """Returns a mask of the events: True for Python functions that already ran when the recording began.

    The line in the name of this event is not the first line of the function, but the line that ran when the recording
    began. In most programs, this is the line with `prof.step()` (pytorch torch/csrc/autograd/profiler_python.cpp,
    recordPyCall with the current line of each frame of the stack).
    """
    events, mask = trace.events, np.zeros(len(trace.events), np.bool_)
    others = trace.rows(Kind.CPU_OP, Kind.ANNOTATION, Kind.CALL)
    if not len(others):
        return mask
    latest = int(events.start[others[0]]) + _ONE_GO_NS
    for rows in by_thread(trace.rows(Kind.PYTHON), events.thread).values():
        if events.start[rows[0]] <= latest:
            mask[rows[: _depth(events, rows)]] = True
    return mask


def _depth(events: Events, rows: Rows) -> int:
    """Returns the number of rows at the start of `rows` of which each begins inside the row before it, at most
    _ONE_GO_NS after it. `rows` are the Python events of one thread, sorted by start."""
    for count in (_USUAL_DEPTH, len(rows)):
        start, end = events.start[rows[:count]], events.end[rows[:count]]
        nested = (np.diff(start) <= _ONE_GO_NS) & (end[1:] <= end[:-1])
        if not nested.all():
            return 1 + int(np.argmin(nested))
    return len(rows)
