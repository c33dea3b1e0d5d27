"""Runs one half of a pair in this process, first timed and then profiled, and tells of it in JSON lines on stdout.

`python -m demo.half NAME slow|fixed FOLDER STEPS REPEATS`: for `demo record`, which starts it once per half so that
thread counts, workers and caches of one half never reach the other.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from demo.pairs import HALVES, PAIRS, Pair
from tb_bottleneck.monitor.context import as_metadata, collect

Train = Callable[[bool, int, Callable[[], None]], None]

# The first steps start the workers, fill their queues (2 workers with 2 batches each), and let torch allocate.
SETTLING_STEPS = 9
PROFILER_WARMUP_STEPS = 3


def time_steps(train: Train, cured: bool, steps: int) -> list[int]:
    """The durations in ns of `steps` steps that no profiler watches, after the first ones."""
    ends: list[int] = []
    train(cured, SETTLING_STEPS + steps, lambda: ends.append(time.perf_counter_ns()))
    return [after - before for before, after in pairwise(ends[SETTLING_STEPS - 1 :])]


def profile_steps(train: Train, cured: bool, pair: Pair, folder: Path) -> Path:
    """Train under torch.profiler and return the trace that it wrote into `folder`, our context in it."""
    before = SETTLING_STEPS + PROFILER_WARMUP_STEPS
    prof = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=SETTLING_STEPS, warmup=PROFILER_WARMUP_STEPS, active=pair.active_steps, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(folder), worker_name="demo", use_gzip=True),
        record_shapes=True,
        with_stack=pair.with_stack,
    )
    done = 0
    context = ""

    def on_step() -> None:
        nonlocal done, context
        done += 1
        prof.step()
        if done == SETTLING_STEPS:  # looked at here, so that looking is not in the trace
            context = as_metadata()
        if done == before:  # the recording has begun; earlier torch would not take it
            prof.add_metadata_json("tb_bottleneck", context)

    with prof:
        train(cured, before + pair.active_steps, on_step)
    (trace,) = folder.glob("*.pt.trace.json.gz")
    return trace


def main(name: str, half: str, folder: str, steps: str, repeats: str) -> None:
    """Time `repeats` trainings of `steps` steps each, then profile one, and say after each what came of it."""
    pair, cured = PAIRS[name], HALVES[half]
    train: Train = importlib.import_module(f"demo.{name}").train
    for _ in range(int(repeats)):
        _tell(steps_ns=time_steps(train, cured, int(steps)))
    trace = profile_steps(train, cured, pair, Path(folder))
    _tell(trace=trace.name, context={**collect(), "torch": torch.__version__})


def _tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
