"""Runs one variant of a pair in this process, first timed and then profiled, and prints JSON lines on stdout.

`python -m demo.variant NAME VARIANT FOLDER STEPS REPEATS SECONDS` is started by `demo record` once per variant, so that
thread counts, workers and caches of one variant cannot affect the other.
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
from tb_bottleneck.monitor.facts.process import METADATA_SCHEMA, collect

Train = Callable[[Any, int, Callable[[], None], torch.device], None]

PROFILER_WARMUP_STEPS = 3
# An upper limit; not more than the timed trainings. The fastest is kept: other programs can only slow one down.
PROFILED_TRAININGS = 3
MONITORED_STEPS = (40, 1000)  # minimum, maximum


def device_of(pair: Pair) -> torch.device:
    """Returns the GPU, or the CPU if there is no GPU or the pair is for the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() and not pair.on_cpu else "cpu")


def time_steps(train: Train, setting: object, pair: Pair, steps: int) -> list[int]:
    """Returns the durations in ns of `steps` unprofiled steps after the pair's settling steps.

    The device is synchronised only before the first and after the last step, so their sum is correct on a GPU too. A
    single duration ends when the host has issued that step.
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
    """Trains under torch.profiler. Returns the ns of the recorded steps, and the trace with context in `folder`.

    `unprofiled_ns` is the mean step without a profiler; the context contains it to show the profiler's overhead.
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
        profile_memory=bool(pair.memory),
    )
    done = began = ended = 0
    context = ""

    def on_step() -> None:
        nonlocal done, began, ended, context
        done += 1
        ended = time.perf_counter_ns()  # before the profiler writes its file
        prof.step()
        if done == pair.settling_steps:  # collect now, so that the trace does not contain the collection
            facts = {**collect(), "unprofiled_step_ns": round(unprofiled_ns)}
            context = json.dumps({"schema": METADATA_SCHEMA, "context": facts}, allow_nan=False)
        if done == before:  # the recording has begun; torch ignores earlier metadata
            prof.add_metadata_json("tb_bottleneck", context)
            began = time.perf_counter_ns()

    with prof:
        train(setting, before + pair.active_steps, on_step, device)
    (trace,) = folder.glob("*.pt.trace.json.gz")
    return ended - began, trace


def monitor_steps(train: Train, setting: object, pair: Pair, folder: Path, steps: int) -> None:
    """Trains under the monitor, which writes into its own run directory in `folder`. Records no trace."""
    with Monitor(folder, captures=0, every_s=1.0):
        train(setting, steps, lambda: None, device_of(pair))


def main(name: str, variant: str, folder: str, steps: str, repeats: str, seconds: str) -> None:
    """Times `repeats` trainings of `steps` steps each, monitors one for about `seconds` s, and profiles some."""
    pair = PAIRS[name]
    setting = pair.variants[variant]
    train: Train = importlib.import_module(f"demo.problems.{pair.script or name}").train
    means = []
    for _ in range(int(repeats)):
        durations = time_steps(train, setting, pair, int(steps))
        means.append(statistics.fmean(durations))
        _print_entry(steps_ns=durations)
    least, most = MONITORED_STEPS
    monitor_steps(train, setting, pair, Path(folder), min(max(round(float(seconds) * 1e9 / min(means)), least), most))
    takes = [Path(folder) / f"take {number}" for number in range(min(PROFILED_TRAININGS, int(repeats)))]
    _, fastest = min(profile_steps(train, setting, pair, take, min(means)) for take in takes)
    trace = fastest.rename(Path(folder) / fastest.name)
    _print_entry(trace=trace.name, context={**collect(), "torch": torch.__version__})


def _print_entry(**entry: object) -> None:
    print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
