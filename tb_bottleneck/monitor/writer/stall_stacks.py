"""Samples the stack of the training thread while no step ends, and determines what the thread does, and for how long.

The monitor's own thread takes the samples. While native code of any thread holds the interpreter's lock, the monitor's
thread cannot run: it takes no samples, and the heartbeat stops, too.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from tb_bottleneck.monitor import garbage_collector
from tb_bottleneck.monitor.capture.call_lines import Programs
from tb_bottleneck.monitor.workers.stack_sampler import below_import_path

MAX_THREADS, MAX_FRAMES, MAX_NAME = 16, 24, 120
"""Limits: threads, frames of a stack (the innermost), and characters of a name."""
MAX_DEPTH = 200

PHASES = (
    ("checkpoint", ("torch/serialization.py", "torch/distributed/checkpoint/")),
    ("collective", ("torch/distributed/distributed_c10d.py", "torch/distributed/nn/", "torch/distributed/_functional")),
    ("data", ("torch/utils/data/",)),
    ("optimizer", ("torch/optim/",)),
    ("backward", ("torch/autograd/",)),
    ("compilation", ("torch/_dynamo/", "torch/_inductor/")),
    ("forward", ("torch/nn/modules/", "torch/nn/parallel/")),
)
"""Phases of a step, each with the beginnings of the paths of its files in torch. The innermost frame in one of these
files decides."""
OTHER = "other"

Frame = tuple[str, int, str]  # file, line, function
Shape = tuple[tuple[CodeType, int], ...]


class StallStacks:
    """The stack of one thread, sampled repeatedly."""

    def __init__(
        self,
        current_frames: Callable[[], dict[int, FrameType]] = sys._current_frames,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._current_frames, self._clock = current_frames, clock
        self._programs = Programs()
        self._shape: Shape = ()
        self._since = 0.0
        self.phase = ""
        """What the thread does: a name in PHASES, or OTHER; "" before the first sample."""
        self.where: Frame | None = None
        """The innermost line of the user's program in the stack; None if there is none."""

    @property
    def still_s(self) -> float:
        """Time in seconds for which all samples found the same lines in all frames; 0 after `reset`."""
        return self._clock() - self._since if self._shape else 0.0

    def reset(self) -> None:
        """Forgets the last sample, because a step has ended."""
        self._shape = ()

    def look(self, thread: int | None) -> None:
        """Samples the stack of the thread with the id `thread`; if None, of the main thread."""
        with garbage_collector.off():
            frame = self._current_frames().get(thread or threading.main_thread().ident or 0)
            frames = list(islice(_outward(frame), MAX_DEPTH))
        shape = tuple((each.f_code, each.f_lineno) for each in frames)
        if shape != self._shape:
            self._shape, self._since = shape, self._clock()
            named = [self._named(each) for each in frames]
            self.phase = _phase_of(named)
            own = (each for each, frame in zip(named, frames, strict=True) if not _is_monitor(frame))
            self.where = next((each for each in own if self._programs[each[0]]), None)

    def all_threads(self, training: int | None) -> list[dict[str, object]]:
        """Returns the stacks of the process's threads except the calling one, as in `stacks` of heartbeat.json
        (heartbeat.py).

        `training` is the id of the training thread (None: the main thread), whose stack comes first. In each stack, the
        innermost frame comes first. At most MAX_THREADS threads are included."""
        names = {each.ident: each.name for each in threading.enumerate()}
        first = training or threading.main_thread().ident
        with garbage_collector.off():
            found = sorted(self._current_frames().items(), key=lambda item: item[0] != first)[:MAX_THREADS]
            stacks = [(ident, list(islice(_outward(frame), MAX_FRAMES))) for ident, frame in found]
        return [
            {
                "thread": names.get(ident, "")[:MAX_NAME],
                "training": ident == first,
                "frames": [self._named(each) for each in frames],
            }
            for ident, frames in stacks
            if ident != threading.get_ident()
        ]

    def _named(self, frame: FrameType) -> Frame:
        code = frame.f_code
        return below_import_path(code.co_filename)[-MAX_NAME:], frame.f_lineno or 0, code.co_name[:MAX_NAME]


_MONITOR = str(Path(__file__).parents[1])


def _is_monitor(frame: FrameType) -> bool:
    """Returns True if the code of `frame` belongs to the monitor. The full path is compared, because the monitor's
    files may lie outside the import path (an editable installation)."""
    return frame.f_code.co_filename.startswith(_MONITOR)


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _phase_of(frames: list[Frame]) -> str:
    for file, _, _ in frames:
        path = file.replace("\\", "/")
        for phase, starts in PHASES:
            if path.startswith(starts):
                return phase
    return OTHER
