"""Adds to a trace the line of each function call that the user's program makes while the profiler records.

The JSON of a trace has only the line where each function begins. torch knows the line of each call: it is in the tree
of events of a finished profile (`_KinetoProfile.profiler.kineto_results.experimental_event_tree()`; present in torch
2.13 and 2.15). The lines are stored under a key of the trace, next to the trace's events:

    "tb_bottleneck_lines": {"version": 1, "calls": N, "complete": false if calls are missing,
                            "first": start of the first call in ns since 1970,
                            "files": {file as in the trace's frames: [size in bytes, time of change in ns since 1970]},
                            "samples": [[file, first line of the function, function, line, number of samples]],
                            "starts": base64 of zlib of N uint64: ns since the start of the previous call (first: 0),
                            "lines": base64 of zlib of N uint32: line of each call}

Numbers are little endian, and calls are sorted by start. A reader finds the line of a Python event by the start of the
event, which equals the start of the call exactly.
"""

import base64
import json
import logging
import os
import sys
import time
import zlib
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

KEY = "tb_bottleneck_lines"
MAX_SECONDS = 1.0
"""Time limit of the walk through the tree of events, which runs on the training thread. Measured with torch 2.13 on an
AMD EPYC: 10,000 calls take 0.03 s, 100,000 calls 0.4 s. If one function makes more than 500,000 calls, torch's list of
these calls alone takes longer than the limit."""
MAX_BYTES = 2 << 20
"""Limit of the JSON text of the key, in characters. If the text would be longer, only the first calls are kept."""
MAX_FILES = 200
_BEGAN_NS = time.time_ns()
"""Time when this module was imported, which is about the start of the process. A file that was changed later may differ
from the code that runs."""
_CHECKED = 256
_LEVEL = 6
_TAIL = 256
_PROGRAM_NAMES = {"profile", "test", "trace", "code"}
"""Names of modules of the standard library that no training uses. A file or folder with such a name belongs to the
program."""

_log = logging.getLogger(__name__)


def call_lines(profiler: Any, samples: Sequence[Sequence[object]] = ()) -> str | None:
    """Returns the JSON text of the value of `tb_bottleneck_lines`; None if the profile has no calls of the program, or
    no tree of events.

    `profiler` is a torch.profiler.profile that has ended. `samples` is the result of LineSampler.stop
    (line_samples.py). Never raises, although the tree of events is not a public interface of torch.
    """
    try:
        roots = profiler.profiler.kineto_results.experimental_event_tree()
        programs = Programs()
        calls, complete = _walk(roots, programs, time.perf_counter() + MAX_SECONDS)
        return _text(calls, complete, {"files": _files(programs), "samples": samples}) if calls else None
    except Exception:  # an error in another version of torch must not disturb the training
        _log.debug("the lines of calls are not available", exc_info=True)
        return None


def _walk(roots: list[Any], is_own: "Programs", deadline: float) -> tuple[list[tuple[int, int]], bool]:
    """Returns the calls in the tree of events `roots`, and whether the whole tree was visited before `deadline` (a
    value of time.perf_counter).

    The calls are sorted pairs (start in ns, line). `is_own` tells which files belong to the user's program."""
    calls: list[tuple[int, int]] = []
    todo, seen = list(reversed(roots)), 0
    while todo:
        event = todo.pop()
        seen += 1
        if seen % _CHECKED == 0 and time.perf_counter() > deadline:
            return sorted(calls), False
        caller = getattr(event.extra_fields, "caller", None)
        if caller is not None and caller.line_number > 0 and is_own[caller.file_name]:
            calls.append((event.start_time_ns, caller.line_number))
        todo += event.children
    return sorted(calls), True


class Programs(dict[str, bool]):
    """A dict: file name -> True if the file belongs to the user's program, otherwise False.

    File names are relative to the import path, as the profiler writes them. Missing entries are added when they are
    looked up."""

    def __missing__(self, file: str) -> bool:
        top = file.replace("\\", "/").split("/")[0].removesuffix(".py")
        path = str(getattr(sys.modules.get(top), "__file__", None) or file).replace("\\", "/")
        packaged = "/site-packages/" in path or "/dist-packages/" in path or top == "tb_bottleneck"
        standard = top in sys.stdlib_module_names and top not in _PROGRAM_NAMES
        self[file] = not (packaged or standard or file.startswith("<") or not file.endswith(".py"))
        return self[file]


def _files(programs: Mapping[str, bool]) -> dict[str, list[int]]:
    """Returns a dict: file of the program -> [size in bytes, time of its last change in ns since 1970], for at most
    MAX_FILES files. Files that changed after _BEGAN_NS are left out."""
    found = {}
    for name in [file for file, own in programs.items() if own][:MAX_FILES]:
        for folder in ("", *sys.path):
            try:
                facts = os.stat(os.path.join(folder, name))
            except OSError:
                continue
            if facts.st_mtime_ns < _BEGAN_NS:
                found[name] = [facts.st_size, facts.st_mtime_ns]
            break
    return found


def _text(calls: list[tuple[int, int]], complete: bool, others: Mapping[str, object]) -> str:
    while True:
        first = calls[0][0]
        before = first
        starts, lines = array("Q"), array("I")
        for start, line in calls:
            starts.append(start - before)
            lines.append(min(line, 0x7FFFFFFF))
            before = start
        content = {"version": 1, "calls": len(calls), "complete": complete, "first": first, **others}
        text = json.dumps({**content, "starts": _packed(starts), "lines": _packed(lines)})
        if len(text) <= MAX_BYTES:
            return text
        calls, complete = calls[: len(calls) * MAX_BYTES // (2 * len(text)) + 1], False


def _packed(numbers: "array[int]") -> str:
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(zlib.compress(numbers.tobytes(), _LEVEL)).decode("ascii")


def copy_with_keys(source: BinaryIO, target: Any, keys: Mapping[str, str]) -> None:
    """Copies the JSON object in `source` to `target`, and adds the entries of `keys` at the end of the object. `keys`
    has the value of each new key as JSON text.

    If `source` does not end with a JSON object, copies `source` unchanged."""
    size = source.seek(0, os.SEEK_END)
    begin = max(size - _TAIL, 0)
    source.seek(begin)
    end = source.read().rfind(b"}")
    source.seek(0)
    left = begin + end if end >= 0 and keys else size
    while left > 0 and (block := source.read(min(left, 1 << 20))):
        target.write(block)
        left -= len(block)
    if end >= 0 and keys:
        added = "".join(f',\n"{name}": {text}' for name, text in keys.items())
        target.write(added.encode("utf-8") + b"\n")
        target.write(source.read())
