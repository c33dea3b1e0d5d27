"""One half of a case in a process of its own: `python -m tests.trainings.half CASE HALF RANK FOLDER`.

Reads commands from stdin, one per line, and answers each with a line of JSON on stdout: `time` trains without a
profiler, `trace` records a training as the user guide says, into `FOLDER/HALF`. So both halves can be timed in turn.
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
from torch.profiler import profile, schedule, tensorboard_trace_handler

from tb_bottleneck import as_metadata
from tests.trainings.cases import CASES, TRAININGS, Case

SETTLING_STEPS = 6
RECORDING = {"skip_first": 10, "wait": 1, "warmup": 2, "active": 6}
Train = Callable[[str, bool, int, Callable[[], None]], None]


def time_steps(case: Case, train: Train, fixed: bool) -> dict[str, float]:
    """Returns the mean wall time and the mean CPU time of this process per step, in ms."""
    ends: list[tuple[float, float]] = []
    train(case.problem, fixed, SETTLING_STEPS + case.steps, lambda: ends.append((time.perf_counter(), _cpu())))
    (wall, cpu), (wall_end, cpu_end) = ends[SETTLING_STEPS - 1], ends[-1]
    return {"wall_ms": (wall_end - wall) * 1e3 / case.steps, "cpu_ms": (cpu_end - cpu) * 1e3 / case.steps}


def _cpu() -> float:
    return time.process_time()


def record(case: Case, train: Train, fixed: bool, rank: int, folder: Path) -> dict[str, float]:
    """Records one trace into `folder`. Returns the mean wall time of the recorded steps in ms."""
    ends: list[float] = []
    whole = sum(RECORDING.values())
    handler = tensorboard_trace_handler(str(folder), worker_name=f"rank{rank}", use_gzip=True)
    with profile(
        schedule=schedule(**RECORDING, repeat=1), on_trace_ready=handler, record_shapes=True, with_stack=case.stacks
    ) as prof:

        def on_step() -> None:
            ends.append(time.perf_counter())
            if len(ends) == whole - 1:
                prof.add_metadata_json("tb_bottleneck", as_metadata())
            prof.step()

        train(case.problem, fixed, whole + 1, on_step)
    return {"recorded_ms": (ends[whole - 1] - ends[whole - 7]) * 1e3 / 6}


def serve(case: Case, half: str, rank: int, folder: Path, answers: TextIO) -> None:
    """Answers commands until stdin ends."""
    module, function = TRAININGS[case.training]
    train: Train = getattr(importlib.import_module(f"tests.trainings.{module}"), function)
    for command in sys.stdin:
        for seed in (torch.manual_seed, random.seed, np.random.seed):
            seed(0)
        if command.strip() == "time":
            answer = time_steps(case, train, half == "fixed")
        else:
            answer = record(case, train, half == "fixed", rank, folder / half)
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
    serve(case, half, int(rank), Path(folder), answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
