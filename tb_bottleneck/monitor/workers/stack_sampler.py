"""Samples the stacks of a DataLoader's worker processes, and counts the files that they open.

This module and the modules that it imports need the standard library only.
"""

import builtins
import contextlib
import io
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import update_wrapper
from types import BuiltinFunctionType, FrameType
from typing import Any

from tb_bottleneck.monitor import garbage_collector

OPENS = "<built-in function open>"
"""The frame of a call of `open`, as the profiler names it."""


class CountedOpen:
    """A replacement of Python's `open` that counts its calls.

    An audit hook would also see files that are opened with `os.open`. But an audit hook cannot be removed, and slows
    every audited call: a call of `id()` takes 0.77 instead of 0.05 us (measured with Python 3.11). Therefore `open`
    itself is replaced, in worker processes only. A call of `open`, which takes 7 us, then takes 0.7 us more, and an
    error of `open` has one more line in its traceback. Neither way sees files that C and C++ libraries open.

    The replacement is an object and not a function: if a class stores `open` as an attribute, a function would become a
    method of the class."""

    def __init__(self, original: Callable[..., Any]) -> None:
        update_wrapper(self, original)
        self.__module__ = "io"  # the module in which pickle finds `open`; the original has `_io` since Python 3.14
        self.original = original
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1  # if several threads call at the same time, a call may not be counted
        return self.original(*args, **kwargs)

    def __reduce__(self) -> str:
        return "open"  # pickled like the original: by the name in its module


def count_opens() -> CountedOpen | None:
    """Replaces `open` by a CountedOpen, and returns this object. If the program has replaced `open`, changes nothing
    and returns None."""
    original = uncounted(builtins.open)  # a forked worker may have the counter of its parent
    if builtins.open is not io.open or not isinstance(original, BuiltinFunctionType):
        return None
    counted = CountedOpen(original)
    builtins.open = io.open = counted
    return counted


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the original function if `function` is a CountedOpen, otherwise `function` itself."""
    return function.original if isinstance(function, CountedOpen) else function


EVERY_S = 0.05
FIRST_WRITE_S, WRITE_S = 0.5, 15.0
MAX_STACKS, MAX_FRAMES, MAX_NAME = 100, 24, 120
"""Limits: distinct stacks between two writes, frames of a stack (the innermost), and characters of a frame."""
MAX_FILES = 4_096
"""Maximum number of unread files. If there are more, nobody reads them, and the sampling ends."""
LONGEST_NS = 1_000_000_000
"""Limit in ns of the time that one sample counts. A longer time since the previous sample means that the process was
stopped."""

WAITS = "<waits for storage>"
FETCH = ("fetch.py", "fetch")
WORKER_LOOP = ("worker.py", "_worker_loop")
"""Two functions of torch, as (file, function): FETCH makes a batch, WORKER_LOOP does all work of a worker."""

_IS_FETCH, _IS_LOOP = 1, 2


class SampledWorkerInit:
    """A `worker_init_fn` that begins to sample, and then calls `original`, the user's function.

    An instance can be pickled if `original` can be pickled."""

    def __init__(self, folder: str, original: Callable[[int], Any] | None) -> None:
        self.folder, self.original = folder, original

    def __call__(self, worker: int) -> Any:
        """Runs in the worker process, before its first batch."""
        with contextlib.suppress(Exception):  # after an error, the worker must start without the sampler
            StackSampler(self.folder).start()
        return self.original(worker) if self.original is not None else None


class StackSampler:
    """Samples the stack of the thread that creates it: the main thread of a worker process.

    A daemon thread reads the stack 20 times per second, and adds the time since its last sample to this stack. After
    0.5 s, and then at growing intervals of up to 15 s, it writes the totals to a new file, which the monitor reads and
    deletes. In the worker's own code, only the CountedOpen runs in addition.

    A function of C has no frame in the stack, so the time of `file.read()` counts for the caller. But Linux shows
    whether a thread waits for storage (state D in /proc). In this case, the frame WAITS is added to the stack.

    Times are summed instead of numbers of samples, because the daemon thread cannot take samples while native code
    holds the interpreter's lock. The next sample then counts the whole time, and has the stack of the call that just
    returned.

    Cost, measured with Python 3.11 on a stack of 25 frames: 13 us per sample, which is 0.03 % of a core, and 250 us per
    file. A worker that computes in Python was no slower than without the sampler."""

    def __init__(self, folder: str, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._folder, self._clock = folder, clock
        self._thread = threading.get_ident()
        task = f"/proc/self/task/{threading.get_native_id()}"
        self._state, self._scheduled = _opened(f"{task}/stat"), _opened(f"{task}/schedstat")
        self._random = random.Random(os.getpid())  # the user's generator stays as it is
        self._stacks: Counter[str] = Counter()
        self._waiting_ns = self._other_ns = self._written = 0
        self._began = self._last = clock()
        self._frames: dict[Any, tuple[str, int]] = {}
        self._opens: CountedOpen | None = None
        self._io = self._counters()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts to count calls of `open`, and starts the sampling thread. The thread ends when the folder for the
        files is deleted, when MAX_FILES files are unread, or at the first error."""
        from multiprocessing import util

        self._opens = count_opens()
        threading.Thread(target=self._run, name="tb_bottleneck worker", daemon=True).start()
        # Runs when the worker ends by itself (CPython multiprocessing/process.py, _bootstrap).
        util.Finalize(None, self.write, exitpriority=1)

    def look(self, frame: FrameType | None, waits: bool = False) -> None:
        """Adds the time since the last sample to the stack whose innermost frame is `frame`.

        `waits` is True if the thread waits for storage."""
        now = self._clock()
        spent, self._last = min(now - self._last, LONGEST_NS), now
        stack = self._stack(frame)
        if waits and stack is not None:
            stack += f";{WAITS}"
        if stack is None:
            self._waiting_ns += spent
        elif stack in self._stacks or len(self._stacks) < MAX_STACKS:
            self._stacks[stack] += spent
        else:
            self._other_ns += spent

    def write(self) -> None:
        """Writes the totals since the last write to a new file. Never raises."""
        try:
            with self._lock:
                self._write()
        except Exception:  # the folder is gone, or the disk is full
            self._folder = ""

    def _run(self) -> None:
        try:
            write_at, every = self._clock() + FIRST_WRITE_S * 1e9, FIRST_WRITE_S
            while self._folder:
                # Not periodic, since batches may be made with the same period.
                time.sleep(EVERY_S * (0.5 + self._random.random()))
                waits = self._waits_for_storage()
                with garbage_collector.off():
                    self.look(sys._current_frames().get(self._thread), waits)
                if self._clock() >= write_at:
                    self.write()
                    every = min(2 * every, WRITE_S)
                    write_at = self._clock() + every * 1e9
        except Exception:  # a worker must never see an error of the monitor
            return

    def _waits_for_storage(self) -> bool:
        if self._state < 0:
            return False
        # The state follows the name, which is in parentheses and may contain anything (proc(5)).
        return os.pread(self._state, 200, 0).rpartition(b")")[2][1:2] == b"D"

    def _stack(self, frame: FrameType | None) -> str | None:
        """Returns the functions inside torch's `fetch`, outermost first and separated by ";". Returns None if the
        worker makes no batch now."""
        names: list[str] = []
        while frame is not None:
            code = frame.f_code
            name, role = self._frames.get(code) or self._add(code)
            if role == _IS_LOOP:
                return None  # the worker waits for the next task, or sends a batch
            names.append(name)
            if role == _IS_FETCH:
                return ";".join(names[-MAX_FRAMES:][::-1])
            frame = frame.f_back
        return None

    def _add(self, code: Any) -> tuple[str, int]:
        """Returns the name and the role of the function with the code object `code`. The name is as the profiler writes
        it, with the class if Python knows it (3.11). The role is _IS_LOOP, _IS_FETCH or 0 (other functions)."""
        key = (os.path.basename(code.co_filename), code.co_name)
        role = (_IS_LOOP if key == WORKER_LOOP else _IS_FETCH if key == FETCH else 0) * ("torch" in code.co_filename)
        function = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
        if code is CountedOpen.__call__.__code__:
            return OPENS, 0
        name = f"{below_import_path(code.co_filename)}({code.co_firstlineno}): {function}".replace(";", ",")[-MAX_NAME:]
        if len(self._frames) < 10 * MAX_STACKS:
            self._frames[code] = (name, role)
        return name, role

    def _counters(self) -> dict[str, int]:
        opens = {"opens": self._opens.calls} if self._opens is not None else {}
        return _io_counters() | opens | self._core_time()

    def _core_time(self) -> dict[str, int]:
        """Returns `core_ns`: the time for which the sampled thread ran or waited for a core; empty if unknown."""
        if self._scheduled < 0:
            return {}
        run, queued, *_ = os.pread(self._scheduled, 200, 0).split()  # Linux documentation, scheduler/sched-stats
        return {"core_ns": int(run) + int(queued)}

    def _write(self) -> None:
        if not self._folder or len(os.listdir(self._folder)) >= MAX_FILES:
            self._folder = ""
            return
        io = self._counters()
        totals = {
            "process": os.getpid(),
            "began_ns": self._began,
            "until_ns": self._last,
            "stacks": dict(self._stacks),
            "other_ns": self._other_ns,
            "waiting_ns": self._waiting_ns,
            **{name: value - self._io.get(name, 0) for name, value in io.items()},
        }
        self._stacks, self._waiting_ns, self._other_ns, self._io = Counter(), 0, 0, io
        path = os.path.join(self._folder, f"{os.getpid()}-{self._written}")
        self._written += 1
        with uncounted(open)(path + ".part", "w", encoding="utf-8") as file:
            json.dump(totals, file)
        os.replace(path + ".part", path + ".json")


def _opened(path: str) -> int:
    """Returns a file descriptor for reading `path`, or -1 if the file cannot be opened."""
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return -1


def below_import_path(path: str) -> str:
    """Returns `path` relative to the longest matching entry of sys.path, as the profiler writes file names; only the
    name of the file if no entry matches."""
    folders = [folder for folder in sys.path if folder and path.startswith(folder.rstrip(os.sep) + os.sep)]
    return path[len(max(folders, key=len).rstrip(os.sep)) + 1 :] if folders else os.path.basename(path)


def _io_counters() -> dict[str, int]:
    """Returns counters of this process: `read_bytes`, `reads` (number of read calls), and `disk_bytes` (bytes that came
    from disks); empty if they cannot be read. Linux only (proc(5))."""
    try:
        with uncounted(open)("/proc/self/io", encoding="ascii") as file:
            lines = dict(line.split(": ") for line in file.read().splitlines())
        return {"read_bytes": int(lines["rchar"]), "reads": int(lines["syscr"]), "disk_bytes": int(lines["read_bytes"])}
    except (OSError, ValueError, KeyError):
        return {}
