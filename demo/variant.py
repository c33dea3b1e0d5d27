"""Runs one variant of a pair in this process, first timed and then monitored, and prints JSON lines on stdout.

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
from torch.profiler import ProfilerActivity, profile, schedule

from demo.pairs import MONITORED, PAIRS, Pair
from tb_bottleneck import Monitor, trace_handler
from tb_bottleneck.monitor.facts.process import collect

Train = Callable[[Any, int, Callable[[], None], torch.device], None]

PROFILER_WARMUP_STEPS = 3
PROFILED_STEPS = 5
TAKES = 3  # monitored trainings; that of the median duration is kept, as for the timed ones
MONITORED_STEPS = (64, 1000)  # minimum, maximum; the monitor records a trace after 31 steps and the prefetched batches
SUFFIX = ".pt.trace.json.gz"
TRACES = f"*{SUFFIX}"


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


def monitor_steps(train: Train, setting: object, pair: Pair, folder: Path, steps: int) -> Path:
    """Trains under the monitor, which writes its own run directory in `folder`. Returns the trace that it recorded.

    The trace has shapes, stacks and lines. Raises StopIteration if the monitor recorded none.
    """
    with Monitor(folder, captures=1, every_s=1.0):
        train(setting, steps, lambda: None, device_of(pair))
    return next(folder.rglob(TRACES))


def profile_memory(train: Train, setting: object, pair: Pair, folder: Path) -> Path:
    """Trains under torch.profiler with `profile_memory`, which the monitor does not set. Returns the trace."""
    before = pair.settling_steps + PROFILER_WARMUP_STEPS
    prof = profile(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])],
        schedule=schedule(wait=pair.settling_steps, warmup=PROFILER_WARMUP_STEPS, active=PROFILED_STEPS, repeat=1),
        on_trace_ready=trace_handler(str(folder), worker_name="demo", use_gzip=True),
        record_shapes=True,
        with_stack=True,
        profile_memory=True,
    )
    with prof:
        train(setting, before + PROFILED_STEPS, prof.step, device_of(pair))
    return next(folder.glob(TRACES))


def main(name: str, variant: str, folder: str, steps: str, repeats: str, seconds: str) -> None:
    """Times `repeats` trainings of `steps` steps each, and monitors some for about `seconds` s each."""
    pair = PAIRS[name]
    setting = pair.variants[variant]
    train: Train = importlib.import_module(f"demo.problems.{pair.script or name}").train
    means = []
    for _ in range(int(repeats)):
        durations = time_steps(train, setting, pair, int(steps))
        means.append(statistics.fmean(durations))
        _print_entry(steps_ns=durations)
    least, most = MONITORED_STEPS
    monitored = min(max(round(float(seconds) * 1e9 / min(means)), least), most)
    takes = [monitored_take(train, setting, pair, Path(folder) / f"take {n}", monitored) for n in range(TAKES)]
    _, typical, recorded = sorted(takes)[TAKES // 2]
    (typical / MONITORED).rename(Path(folder) / MONITORED)
    if pair.memory:
        recorded = profile_memory(train, setting, pair, Path(folder) / "memory")
    else:
        recorded = Path(folder) / recorded.relative_to(typical)
    trace = recorded.rename(Path(folder) / f"demo.{time.time_ns()}{SUFFIX}")
    for other in (Path(folder) / MONITORED).rglob(TRACES):
        other.unlink()
    _print_entry(trace=trace.name, context={**collect(), "torch": torch.__version__})


def monitored_take(train: Train, setting: object, pair: Pair, folder: Path, steps: int) -> tuple[int, Path, Path]:
    """Returns the duration of a monitored training in ns, its folder, and its trace."""
    began = time.perf_counter_ns()
    trace = monitor_steps(train, setting, pair, folder, steps)
    return time.perf_counter_ns() - began, folder, trace


def _print_entry(**entry: object) -> None:
    print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
