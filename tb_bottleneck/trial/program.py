"""Runs one block of a trial: `python -m tb_bottleneck.trial.program SPEC`, in a process of its own.

The specification is a JSON file: settings, logdir, file of the result, program, and how long to measure.
The program runs under the monitor without captures until enough steps are measured; then the process ends. The result
says from which step on the steps count. The parent reads the steps themselves from the monitor's event file.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor.monitor import Monitor
from tb_bottleneck.tools.programs import run_module, run_script
from tb_bottleneck.trial import changes, overrides

SEED = 0
MAX_LOSSES = 50
MAX_UNCOPIED = 100
LOOK_S = 0.02
LOOK_PARENT_S = 0.5
WARM_UP_STEPS, WARM_UP_S = 10, 1.0
MIN_STEPS = 20
LONGEST = 8.0
"""Steps that are so long that MIN_STEPS take more than this many times the wanted time are measured for that long."""


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
    """Ends the process once enough steps were measured."""

    def __init__(self, monitor: Monitor, losses: Losses, spec: dict[str, Any]) -> None:
        self._monitor, self._losses, self._spec = monitor, losses, spec
        self._first = -1
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begins to watch the steps."""
        threading.Thread(target=self._watch, name="tb_bottleneck trial", daemon=True).start()

    def _watch(self) -> None:
        wanted, prefetched = float(self._spec["measure_s"]), int(self._spec["prefetched"])
        while self._monitor.steps < 1:
            time.sleep(LOOK_S)
        began = time.monotonic()
        while self._monitor.steps < WARM_UP_STEPS + prefetched or time.monotonic() - began < WARM_UP_S:
            if time.monotonic() - began > LONGEST * wanted and self._monitor.steps > 2:
                break
            time.sleep(LOOK_S)
        self._first, began = self._monitor.steps, time.monotonic()
        while True:
            spent, steps = time.monotonic() - began, self._monitor.steps - self._first
            if (spent >= wanted and steps >= MIN_STEPS) or (spent >= LONGEST * wanted and steps >= 2):
                break
            time.sleep(LOOK_S)
        self.finish("measured")

    def finish(self, state: str, because: str = "") -> None:
        """Writes the result, and ends the process. Whoever comes first, the watch or the end of the program."""
        with self._lock:
            steps = self._monitor.steps  # none are left after it has stopped
            self._monitor.stop()
            result = {
                "state": state,
                "because": because,
                "first": self._first,
                "steps": steps,
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
