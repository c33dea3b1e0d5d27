"""Runs one block of a trial (one run of the program) in a process of its own.

The command is `python -m tb_bottleneck.trial.program SPEC`. SPEC is a JSON file with the settings, the logdir, the path
of the result file, the program, and how long to measure. The program runs under the monitor without captures, in turns
with other programs (turns.py). After the last turn, the process ends. The result has the time of the turns, and which
steps were measured. The parent process reads the parts of these steps from the monitor's event file.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.monitor import Monitor
from tb_bottleneck.trial import changes, overrides
from tb_bottleneck.trial.program_facts import Losses, peak_bytes, uncopied_modules
from tb_bottleneck.trial.programs import run_module, run_script
from tb_bottleneck.trial.turns import DONE, END, LOADED, Turns, possible_turns

SEED = 0
LOOK_PARENT_S = 0.5
WARM_UP_STEPS, WARM_UP_S = 10, 1.0
MIN_STEPS = 20
LONGEST = 8.0
"""A block is measured for at most this many times the specified time, even if it has fewer than MIN_STEPS steps
then."""
MIN_KNOWN = 4
"""Fewest steps of a program from which its step time is derived. A choice."""
LOOK_S = 0.2


class Block:
    """Measures the steps of the training in its turns, and ends the process after the last turn.

    `spec` is the specification of the block. Steps are observed through `monitor`.
    """

    def __init__(self, monitor: Monitor, losses: Losses, spec: dict[str, Any]) -> None:
        self._monitor, self._losses, self._spec = monitor, losses, spec
        self._turns = Turns(*spec["pipes"])
        self._times: list[float] = []
        """The times at which the steps of the warm-up ended, in s."""
        self._turn_ns = 0.0
        self._skipped = 0
        """Number of next steps of the turn that are not measured. Loader workers had begun the batches of these steps
        before the workers were stopped, and the system went on reading the data in the meantime."""
        self._began_ns = self._last_ns = self._first = 0
        self._measured_ns = 0
        self._measured: list[tuple[int, int]] = []
        """For each measured turn the number of its first step, and of the step after its last step."""
        self._waits = True
        self._lock = threading.Lock()

    def start(self) -> None:
        """Waits until the parent process grants the start, and begins to observe the steps."""
        self._turns.wait(LOADED)
        self._last_ns, self._waits = time.perf_counter_ns(), False
        self._monitor.after_step = self._after_step
        threading.Thread(target=self._end_long_turn, name="tb_bottleneck trial", daemon=True).start()

    def _after_step(self) -> bool:
        """Handles the end of a step. At the end of the warm-up or of a turn, reports to the parent and waits for the
        next turn. Returns True if it waited. An error ends the process."""
        try:
            self._last_ns = time.perf_counter_ns()
            report = self._report()
            if report is None:
                return False
            self._waits = True
            granted = self._turns.wait(report)
            if granted == END:
                self.finish("measured")
            self._turn_ns = self._wanted_s() / granted * 1e9
            self._skipped = self._monitor.loader_workers
            self._begin()
            self._waits = False
        except Exception as error:
            self.finish("failed", f"{type(error).__name__}: {error}"[:300])
        return True

    def _report(self) -> int | None:
        """Returns what to report to the parent at the end of this step: the number of possible turns if the warm-up
        ends, DONE if a turn ends, otherwise None."""
        if not self._turn_ns:
            if self._is_warm():
                accelerator.synchronize()
                return possible_turns(self._wanted_s(), self._step_s(), self._monitor.loader_workers)
        elif self._skipped:
            self._skipped -= 1
            if not self._skipped:
                self._begin()
        elif time.perf_counter_ns() - self._began_ns >= self._turn_ns:
            accelerator.synchronize()
            self._count(time.perf_counter_ns())
            return DONE
        return None

    def _begin(self) -> None:
        accelerator.synchronize()
        self._began_ns, self._first = time.perf_counter_ns(), self._monitor.steps

    def _count(self, until_ns: int) -> None:
        self._measured_ns += until_ns - self._began_ns
        self._measured.append((self._first, self._monitor.steps))

    def _is_warm(self) -> bool:
        now, steps = time.monotonic(), self._monitor.steps
        self._times.append(now)
        spent = now - self._times[0]
        if steps > 2 and spent > LONGEST * self._spec["measure_s"]:
            return True
        return steps >= WARM_UP_STEPS + self._spec["prefetched"] and spent >= WARM_UP_S

    def _step_s(self) -> float:
        """Returns the median step time in s in the second half of the warm-up."""
        half = self._times[len(self._times) // 2 - 1 :]
        return median(end - begin for begin, end in pairwise(half))

    def _wanted_s(self) -> float:
        """Returns the number of seconds to measure: the specified time, or more (up to LONGEST times) for long
        steps."""
        wanted = float(self._spec["measure_s"])
        return min(max(wanted, MIN_STEPS * self._step_s()), LONGEST * wanted)

    def _end_long_turn(self) -> None:
        """Ends the block with the steps measured so far if no step ends for a long time, for example because an
        evaluation takes minutes. Runs in a thread."""
        while True:
            time.sleep(LOOK_S)
            still_s = (time.perf_counter_ns() - self._last_ns) / 1e9
            if self._waits or still_s < LONGEST * self._spec["measure_s"] or self._monitor.steps < MIN_KNOWN:
                continue
            if self._turn_ns and not self._skipped and self._monitor.steps > self._first:
                self._count(self._last_ns)
            self.finish("measured")

    def finish(self, state: str, because: str = "") -> None:
        """Writes the result and ends the process. `state` is "measured", "ended" or "failed"; `because` is the
        reason."""
        with self._lock:
            try:
                self._write(state, because)
            except Exception:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)  # nothing of the program runs any more, such as a checkpoint at its end

    def _write(self, state: str, because: str) -> None:
        steps = self._monitor.steps  # none are left after it has stopped
        self._monitor.stop()
        result = {
            "state": state,
            "because": because,
            "steps": steps,
            "measured": self._measured,
            "measured_ns": self._measured_ns,
            "losses": self._losses.values(),
            "peak_bytes": peak_bytes(),
            "unused": list(overrides.unused.values()),
            "uncopied": uncopied_modules(self._spec["copy_of"]),
        }
        path = Path(self._spec["result"])
        path.with_suffix(".tmp").write_text(json.dumps(result), encoding="utf-8")
        os.replace(path.with_suffix(".tmp"), path)
        sys.stdout.flush()


def end_with_parent(parent: int) -> None:
    """Starts a thread that ends this process, and the processes that it started, when the parent process is gone.

    A parent that is ended with SIGKILL cannot end its child processes itself. `parent` is its id; it may be gone
    already.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_PARENT_S)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    if hasattr(os, "killpg"):
        threading.Thread(target=watch, name="tb_bottleneck parent", daemon=True).start()


def _seed() -> None:
    import torch

    random.seed(SEED)
    torch.manual_seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)


def main(path: str) -> None:
    """Runs the block that the specification at `path` describes."""
    spec: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    end_with_parent(spec["parent"])
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
        traceback.print_exc()
        block.finish("failed", f"{type(error).__name__}: {error}"[:300])
    block.finish("ended")


if __name__ == "__main__":
    main(sys.argv[1])
