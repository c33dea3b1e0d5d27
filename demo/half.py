"""Runs one half of a pair in this process, first timed and then profiled, and tells of it in JSON lines on stdout.

`python -m demo.half NAME HALF FOLDER STEPS REPEATS SECONDS`: for `demo record`, which starts it once per half so that
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
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from demo.pairs import PAIRS, Pair
from tb_bottleneck import Monitor
from tb_bottleneck.monitor.facts.process import SCHEMA, collect

Train = Callable[[Any, int, Callable[[], None], torch.device], None]

PROFILER_WARMUP_STEPS = 3
# At the most, and no more than are timed. The quickest is kept: what else the machine does only ever slows one down.
PROFILED_TRAININGS = 3
MONITORED_STEPS = (40, 1000)  # at the least, at the most


def device_of(pair: Pair) -> torch.device:
    """The GPU where there is one and the pair means something on it, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() and not pair.on_cpu else "cpu")


def time_steps(train: Train, setting: object, pair: Pair, steps: int) -> list[int]:
    """The durations in ns of `steps` steps that no profiler watches, after the pair's first ones.

    The device is waited for before the first and after the last of them only, so their sum is true on a GPU as well,
    while a single duration says when the host had issued that step.
    """
    device, settling = device_of(pair), pair.settling_steps
    ends: list[int] = []

    def on_step() -> None:
        if device.type == "cuda" and len(ends) + 1 in (settling, settling + steps):
            torch.cuda.synchronize()
        ends.append(time.perf_counter_ns())

    train(setting, settling + steps, on_step, device)
    return [after - before for before, after in pairwise(ends[settling - 1 :])]


def profile_steps(train: Train, setting: object, pair: Pair, folder: Path, unprofiled_ns: float) -> tuple[int, Path]:
    """Train under torch.profiler; return ns of the recorded steps and the trace, written into `folder`, with context.

    `unprofiled_ns` is the mean step without a profiler; it goes into the context, to tell the profiler's own cost.
    """
    device = device_of(pair)
    before = pair.settling_steps + PROFILER_WARMUP_STEPS
    watched = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    prof = profile(
        activities=watched,
        schedule=schedule(wait=pair.settling_steps, warmup=PROFILER_WARMUP_STEPS, active=pair.active_steps, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(folder), worker_name="demo", use_gzip=True),
        record_shapes=True,
        with_stack=pair.with_stack,
    )
    done = began = ended = 0
    context = ""

    def on_step() -> None:
        nonlocal done, began, ended, context
        done += 1
        ended = time.perf_counter_ns()  # before the profiler writes its file
        prof.step()
        if done == pair.settling_steps:  # looked at here, so that looking is not in the trace
            facts = {**collect(), "unprofiled_step_ns": round(unprofiled_ns)}
            context = json.dumps({"schema": SCHEMA, "context": facts}, allow_nan=False)
        if done == before:  # the recording has begun; earlier torch would not take it
            prof.add_metadata_json("tb_bottleneck", context)
            began = time.perf_counter_ns()

    with prof:
        train(setting, before + pair.active_steps, on_step, device)
    (trace,) = folder.glob("*.pt.trace.json.gz")
    return ended - began, trace


def monitor_steps(train: Train, setting: object, pair: Pair, folder: Path, steps: int) -> None:
    """Train under the monitor, which writes into a run directory of its own in `folder`; it records no trace."""
    with Monitor(folder, captures=0, every_s=1.0):
        train(setting, steps, lambda: None, device_of(pair))


def main(name: str, half: str, folder: str, steps: str, repeats: str, seconds: str) -> None:
    """Time `repeats` trainings of `steps` steps each, monitor one for about `seconds` s, profile some; tell of each."""
    pair = PAIRS[name]
    setting = pair.halves[half]
    train: Train = importlib.import_module(f"demo.{pair.script or name}").train
    means = []
    for _ in range(int(repeats)):
        durations = time_steps(train, setting, pair, int(steps))
        means.append(statistics.fmean(durations))
        _tell(steps_ns=durations)
    least, most = MONITORED_STEPS
    monitor_steps(train, setting, pair, Path(folder), min(max(round(float(seconds) * 1e9 / min(means)), least), most))
    takes = [Path(folder) / f"take {number}" for number in range(min(PROFILED_TRAININGS, int(repeats)))]
    _, quickest = min(profile_steps(train, setting, pair, take, min(means)) for take in takes)
    trace = quickest.rename(Path(folder) / quickest.name)
    _tell(trace=trace.name, context={**collect(), "torch": torch.__version__})


def _tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
