"""Runs one block of a trial: `python -m tb_bottleneck.trial.program SPEC`, in a process of its own.

The specification is a JSON file: settings, logdir, file of the result, program, and how long to measure.
The program runs under the monitor without captures, in turns with other programs (turns.py). After its last turn, the
process ends. The result has the time of the turns, and says from which step on the steps count. The parent reads the
parts of the steps from the monitor's event file.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tb_bottleneck.monitor.monitor import Monitor
from tb_bottleneck.tools.programs import run_module, run_script
from tb_bottleneck.trial import changes, overrides
from tb_bottleneck.trial.turns import DONE, END, LOADED, Turns, possible_turns, workers_count

SEED = 0
MAX_LOSSES = 50
MAX_UNCOPIED = 100
LOOK_PARENT_S = 0.5
WARM_UP_STEPS, WARM_UP_S = 10, 1.0
MIN_STEPS = 20
LONGEST = 8.0
"""If MIN_STEPS take more than this many times the wanted time, less of them are measured."""


class Losses:
    """The tensors on which the program calls `backward`, in its first steps. They are read at the end only."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def install(self) -> None:
        """Replaces Tensor.backward."""
        import torch

        tensor_class: Any = torch.Tensor
        original = tensor_class.backward

        def backward(tensor: Any, *args: Any, **given: Any) -> Any:
            if len(self._kept) < MAX_LOSSES and tensor.numel() == 1:
                self._kept.append(tensor.detach().clone())
            return original(tensor, *args, **given)

        tensor_class.backward = backward

    def values(self) -> list[float]:
        """Returns the losses. Waits for the device."""
        return [float(each) for each in self._kept]


class Block:
    """Lets the training take its turns, measures them, and ends the process after the last one."""

    def __init__(self, monitor: Monitor, losses: Losses, spec: dict[str, Any]) -> None:
        self._monitor, self._losses, self._spec = monitor, losses, spec
        self._turns = Turns(*spec["pipes"])
        self._times: list[float] = []
        """The ends of the steps of the warm-up in s."""
        self._turn_ns = 0.0
        self._first = -1
        self._skipped = 0
        """Steps of the turn that are not measured yet: those with batches that workers had begun before they were
        stopped, whose reads went on meanwhile."""
        self._began_ns = self._steps_before = 0
        self._measured_ns = self._measured_steps = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Waits until the program may start, and begins to watch the steps."""
        self._turns.wait(LOADED)
        self._monitor.after_step = self._after_step

    def _after_step(self) -> bool:
        """Measures. Returns True if the training waited for its next turn."""
        if self._first < 0:
            if self._is_warm():
                self._first = self._monitor.steps
                self._wait(possible_turns(self._wanted_s(), self._step_s(), workers_count()))
                return True
        elif self._skipped:
            self._skipped -= 1
            if not self._skipped:
                self._begin()
        elif self._is_turn_over():
            _wait_for_device()
            self._measured_ns += time.perf_counter_ns() - self._began_ns
            self._measured_steps += self._monitor.steps - self._steps_before
            self._wait(DONE)
            return True
        return False

    def _is_warm(self) -> bool:
        now, steps = time.monotonic(), self._monitor.steps
        self._times.append(now)
        spent = now - self._times[0]
        if steps > 2 and spent > LONGEST * self._spec["measure_s"]:
            return True
        return steps >= WARM_UP_STEPS + self._spec["prefetched"] and spent >= WARM_UP_S

    def _step_s(self) -> float:
        """Returns the median step of the second half of the warm-up."""
        half = self._times[len(self._times) // 2 - 1 :]
        return median(end - begin for begin, end in pairwise(half))

    def _wanted_s(self) -> float:
        """Returns the time to measure: as stated, or longer if the steps are long."""
        wanted = float(self._spec["measure_s"])
        return min(max(wanted, MIN_STEPS * self._step_s()), LONGEST * wanted)

    def _is_turn_over(self) -> bool:
        return time.perf_counter_ns() - self._began_ns >= self._turn_ns

    def _wait(self, report: int) -> None:
        granted = self._turns.wait(report)
        if granted == END:
            self.finish("measured")
        self._turn_ns = self._wanted_s() / granted * 1e9
        self._skipped = workers_count()
        self._begin()

    def _begin(self) -> None:
        self._began_ns, self._steps_before = time.perf_counter_ns(), self._monitor.steps

    def finish(self, state: str, because: str = "") -> None:
        """Writes the result, and ends the process."""
        with self._lock:
            steps = self._monitor.steps  # none are left after it has stopped
            self._monitor.stop()
            result = {
                "state": state,
                "because": because,
                "first": self._first,
                "steps": steps,
                "measured_ns": self._measured_ns,
                "measured_steps": self._measured_steps,
                "losses": self._losses.values(),
                "peak_bytes": _peak_bytes(),
                "unused": list(overrides.unused.values()),
                "uncopied": uncopied_modules(self._spec["copy_of"]),
            }
            path = Path(self._spec["result"])
            path.with_suffix(".tmp").write_text(json.dumps(result), encoding="utf-8")
            os.replace(path.with_suffix(".tmp"), path)
            sys.stdout.flush()
            os._exit(0)  # nothing of the program runs any more, such as a checkpoint at its end


def _wait_for_device() -> None:
    """Waits until the device has done the work of the turn."""
    import torch

    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)  # old versions of torch have no xpu
        if device is not None and device.is_initialized():
            device.synchronize()


def end_with_parent() -> None:
    """Ends this process and those that it started once its parent is gone, which a SIGKILL does not tell."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_PARENT_S)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    if hasattr(os, "killpg"):
        threading.Thread(target=watch, name="tb_bottleneck parent", daemon=True).start()


def uncopied_modules(work_tree: str) -> list[str]:
    """Returns the modules that were imported from `work_tree` although the program runs in a copy of it, as paths.

    An editable installation, or an absolute path in PYTHONPATH, leads there. A change in the copy does not reach them.
    """
    if not work_tree:
        return []
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = [Path(file).resolve() for file in files if isinstance(file, str)]
    top, copy = Path(work_tree).resolve(), Path.cwd()
    return sorted(
        str(file.relative_to(top))
        for file in own
        if file.is_relative_to(top) and not file.is_relative_to(copy) and "site-packages" not in file.parts
    )[:MAX_UNCOPIED]


def _peak_bytes() -> int:
    """Returns the peak of the device's memory, or without a device of the process's."""
    import torch

    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _seed() -> None:
    import torch

    random.seed(SEED)
    torch.manual_seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)


def main(path: str) -> None:
    """Runs the block of a specification."""
    spec: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    end_with_parent()
    _seed()
    changes.apply(spec["settings"])
    losses = Losses()
    losses.install()
    monitor = Monitor(spec["logdir"], captures=0, every_s=1.0, sample_workers=False)
    monitor.start()
    block = Block(monitor, losses, spec)
    block.start()
    program = list(spec["program"])
    try:
        if program[0] == "-m":
            run_module(program[1:])
        else:
            run_script(program[0], program[1:])
    except SystemExit as ended:
        block.finish("ended" if ended.code in (None, 0) else "failed", f"it ended with status {ended.code}")
    except BaseException as error:
        import traceback

        traceback.print_exc()
        block.finish("failed", f"{type(error).__name__}: {error}"[:300])
    block.finish("ended")


if __name__ == "__main__":
    main(sys.argv[1])
