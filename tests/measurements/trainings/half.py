"""One half of a case in a process of its own: `python -m tests.measurements.trainings.half CASE HALF RANK FOLDER`.

Reads commands from stdin, one per line, and answers each with a line of JSON on stdout: `time` trains without a
profiler, `trace` trains with the monitor, which records into `FOLDER/HALF`. So both halves can be timed in turn.
"""

import importlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
from torch import distributed

from tb_bottleneck import Monitor
from tests.measurements.trainings.cases import CASES, TRAININGS, Case

SETTLING_STEPS = 6
RECORDED_STEPS, FEW_STEPS = 160, 8
STEPS_FOR_TRACE = 50
"""Steps of a recorded training; of trainings that are timed for few steps, as many as the trace needs."""
RECORDED_MS, MOST_STEPS = 3000.0, 4000
"""Fast steps are recorded for this long: the end of a trace is a large part of a shorter training."""
Train = Callable[[str, bool, int, Callable[[], None]], None]


def time_steps(case: Case, train: Train, fixed: bool) -> dict[str, float]:
    """Returns the mean wall time and CPU time of this process per step, in ms, and that of timed Python, if any."""
    ends: list[tuple[float, float]] = []
    everyday = sys.modules.get("tests.measurements.trainings.everyday")
    if everyday is not None:
        everyday.spent_ns.clear()
    train(case.problem, fixed, SETTLING_STEPS + case.steps, lambda: ends.append((time.perf_counter(), _cpu())))
    (wall, cpu), (wall_end, cpu_end) = ends[SETTLING_STEPS - 1], ends[-1]
    times = {"wall_ms": (wall_end - wall) * 1e3 / case.steps, "cpu_ms": (cpu_end - cpu) * 1e3 / case.steps}
    if everyday is not None and everyday.spent_ns:
        times["python_ms"] = sum(everyday.spent_ns[-case.steps :]) / 1e6 / case.steps
    return times


def _cpu() -> float:
    return time.process_time()


def record(case: Case, train: Train, fixed: bool, folder: Path, step_ms: float) -> dict[str, float]:
    """Records a training into `folder`. Returns the number of its steps, which take `step_ms`, and their mean time."""
    steps = RECORDED_STEPS if case.steps > FEW_STEPS else STEPS_FOR_TRACE
    if case.ranks == 1:  # all ranks must train for the same number of steps
        steps = max(steps, min(int(RECORDED_MS / max(step_ms, 0.01)), MOST_STEPS))
    ends: list[float] = []
    with Monitor(folder, captures=1, every_s=1.0):
        train(case.problem, fixed, steps, lambda: ends.append(time.perf_counter()))
    return {"steps": len(ends), "recorded_ms": (ends[-1] - ends[0]) * 1e3 / (len(ends) - 1)}


def serve(case: Case, half: str, folder: Path, answers: TextIO) -> None:
    """Answers commands until stdin ends."""
    module, function = TRAININGS[case.training]
    train: Train = getattr(importlib.import_module(f"tests.measurements.trainings.{module}"), function)
    step_ms = RECORDED_MS
    for command in sys.stdin:
        for seed in (torch.manual_seed, random.seed, np.random.seed):
            seed(0)
        if command.strip() == "time":
            answer = time_steps(case, train, half == "fixed")
            step_ms = answer["wall_ms"]
        else:
            answer = record(case, train, half == "fixed", folder / half, step_ms)
        print(json.dumps(answer), file=answers, flush=True)


def main(name: str, half: str, rank: str, folder: str) -> None:
    """Sets up the process as the case says, then serves."""
    case, answers = CASES[name], os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the training prints goes to the log
    torch.set_num_threads(1)
    if not case.free:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if case.ranks > 1:
        meeting = (Path(folder) / f"{half}.rendezvous").absolute()
        distributed.init_process_group("gloo", f"file://{meeting}", rank=int(rank), world_size=case.ranks)
    serve(case, half, Path(folder), answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
