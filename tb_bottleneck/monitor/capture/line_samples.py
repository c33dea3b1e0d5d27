"""Samples which line of the program runs while steps are recorded.

torch knows only the lines of calls (call_lines.py). But a loop in Python may contain no call, and tensor expressions
such as `a[i] += b` are not recorded as calls.
"""

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType

from tb_bottleneck.monitor import garbage_collector
from tb_bottleneck.monitor.capture.call_lines import Programs
from tb_bottleneck.monitor.workers.stack_sampler import below_import_path

EVERY_S = 0.001
SWITCH_S = 0.0005
"""Python's switch interval (sys.setswitchinterval) while lines are sampled. A thread that makes no waiting call keeps
the interpreter for this time before another thread can run. The default of 5 ms is too long for steps of a few ms."""
MAX_LINES = 200
"""Maximum number of lines in the result: the lines with the most samples."""
MAX_DEPTH = 64
MAX_SAMPLES = 20_000
"""Number of samples after which the sampling ends. A recorded window has three seconds at most, unless a trace of long
steps was requested."""
_JOIN_S = 0.1

Sample = tuple[str, int, str, int, int]  # file, first line and name of the function, line, number of samples


class LineSampler:
    """Reads the stack of a thread about once per ms, from a daemon thread, between `start` and `stop`.

    One sample takes 6 µs on a stack of 26 frames (Python 3.11). While native code holds the interpreter's lock, the
    daemon thread cannot take samples. Therefore, a long call of native code is counted only once, for the line that
    runs after it. The daemon thread is started after the profiler, so that the profiler does not record this thread."""

    def __init__(self, current_frames: Callable[[], dict[int, FrameType]] = sys._current_frames) -> None:
        self._current_frames = current_frames
        self._programs = Programs()
        self._files: dict[CodeType, str] = {}
        self._counts: Counter[tuple[CodeType, int]] = Counter()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._interval = 0.0

    def start(self) -> None:
        """Begins to sample the thread that calls this method."""
        self._counts.clear()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, SWITCH_S))
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(threading.get_ident(), self._stopped), name="tb_bottleneck lines", daemon=True
        )
        self._thread.start()

    def stop(self) -> list[Sample]:
        """Ends the sampling. Returns the lines with the most samples, most frequent first; empty if the sampling was
        not started."""
        thread, self._thread = self._thread, None
        if thread is None:
            return []
        if sys.getswitchinterval() <= SWITCH_S:  # otherwise the program has set another interval
            sys.setswitchinterval(self._interval)
        self._stopped.set()
        thread.join(_JOIN_S)
        return [
            (self._files[code], code.co_firstlineno, code.co_name, line, count)
            for (code, line), count in self._counts.copy().most_common(MAX_LINES)
        ]

    def _run(self, thread: int, stopped: threading.Event) -> None:
        try:
            for _ in range(MAX_SAMPLES):
                time.sleep(EVERY_S * (0.5 + random.random()))  # not periodic, since a loop may have the same period
                if stopped.is_set():
                    return
                with garbage_collector.off():
                    self.look(self._current_frames().get(thread))
        except Exception:  # the training must never see an error of the monitor
            return

    def look(self, frame: FrameType | None) -> None:
        """Counts the innermost line of the user's program in the stack whose innermost frame is `frame`."""
        for _ in range(MAX_DEPTH):
            if frame is None:
                return
            code = frame.f_code
            file = self._files.get(code)
            if file is None:
                file = self._files.setdefault(code, below_import_path(code.co_filename))
            if self._programs[file] and frame.f_lineno:
                self._counts[code, frame.f_lineno] += 1
                return
            frame = frame.f_back
