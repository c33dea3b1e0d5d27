"""Runs one half of a pair in this process, first timed and then profiled, and tells of it in JSON lines on stdout.

`python -m demo.half NAME slow|fixed FOLDER STEPS REPEATS`: for `demo record`, which starts it once per half so that
thread counts, workers and caches of one half never reach the other.
"""

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from demo.pairs import HALVES, PAIRS, Pair
from tb_bottleneck import Monitor
from tb_bottleneck.monitor.context import SCHEMA, collect

Train = Callable[[bool, int, Callable[[], None], torch.device], None]

# The first steps start the workers, fill their queues (2 workers with 2 batches each), and let torch allocate.
SETTLING_STEPS = 9
PROFILER_WARMUP_STEPS = 3
# What the monitor watches: long enough for several of its windows, short enough for a file of some tens of kilobytes.
MONITORED_SECONDS = 8
MONITORED_STEPS = (40, 1000)  # at the least, at the most


def device_of(pair: Pair) -> torch.device:
    """The GPU where there is one and the pair means something on it, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() and not pair.on_cpu else "cpu")


def time_steps(train: Train, cured: bool, steps: int, device: torch.device) -> list[int]:
    """The durations in ns of `steps` steps that no profiler watches, after the first ones.

    The device is waited for before the first and after the last of them only, so their sum is true on a GPU as well,
    while a single duration says when the host had issued that step.
    """
    ends: list[int] = []

    def on_step() -> None:
        if device.type == "cuda" and len(ends) + 1 in (SETTLING_STEPS, SETTLING_STEPS + steps):
            torch.cuda.synchronize()
        ends.append(time.perf_counter_ns())

    train(cured, SETTLING_STEPS + steps, on_step, device)
    return [after - before for before, after in pairwise(ends[SETTLING_STEPS - 1 :])]


def profile_steps(train: Train, cured: bool, pair: Pair, folder: Path, unprofiled_ns: float) -> Path:
    """Train under torch.profiler and return the trace that it wrote into `folder`, our context in it.

    `unprofiled_ns` is the mean step without a profiler; it goes into the context, to tell the profiler's own cost.
    """
    device = device_of(pair)
    before = SETTLING_STEPS + PROFILER_WARMUP_STEPS
    watched = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    prof = profile(
        activities=watched,
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
            facts = {**collect(), "unprofiled_step_ns": round(unprofiled_ns)}
            context = json.dumps({"schema": SCHEMA, "context": facts}, allow_nan=False)
        if done == before:  # the recording has begun; earlier torch would not take it
            prof.add_metadata_json("tb_bottleneck", context)

    with prof:
        train(cured, before + pair.active_steps, on_step, device)
    (trace,) = folder.glob("*.pt.trace.json.gz")
    return trace


def monitor_steps(train: Train, cured: bool, pair: Pair, folder: Path, unprofiled_ns: float) -> None:
    """Train under the monitor, which writes into a run directory of its own in `folder`; it records no trace."""
    least, most = MONITORED_STEPS
    steps = min(max(round(MONITORED_SECONDS * 1e9 / unprofiled_ns), least), most)
    with Monitor(folder, captures=0, every_s=1.0):
        train(cured, steps, lambda: None, device_of(pair))


def main(name: str, half: str, folder: str, steps: str, repeats: str) -> None:
    """Time `repeats` trainings of `steps` steps each, then monitor one and profile one; say what came of each."""
    pair, cured = PAIRS[name], HALVES[half]
    train: Train = importlib.import_module(f"demo.{name}").train
    means = []
    for _ in range(int(repeats)):
        durations = time_steps(train, cured, int(steps), device_of(pair))
        means.append(statistics.fmean(durations))
        _tell(steps_ns=durations)
    monitor_steps(train, cured, pair, Path(folder), min(means))
    trace = profile_steps(train, cured, pair, Path(folder), min(means))
    _tell(trace=trace.name, context={**collect(), "torch": torch.__version__})


def _tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
