"""Measures the cost of each sampler in the monitored process: `python tests/bench/samplers.py [--workers 16]`.

Prints wall and CPU time of one reading on this machine, optionally with processes in place of loader workers. The share
is of one core, at each sampler's own interval. Without a GPU, no driver calls are measured, and the output says so.
"""

import argparse
import statistics
import subprocess
import sys
import time

import psutil

from tb_bottleneck.monitor.samplers import all_samplers
from tb_bottleneck.monitor.samplers.sampler import Sampler

READINGS = 60


def cost(sampler: Sampler) -> tuple[float, float, float]:
    """Returns (median wall, largest wall, mean CPU time) of a reading, in microseconds."""
    list(sampler.read())
    walls = []
    cpu = time.thread_time()
    for _ in range(READINGS):
        began = time.perf_counter()
        list(sampler.read())
        walls.append((time.perf_counter() - began) * 1e6)
    return statistics.median(walls), max(walls), (time.thread_time() - cpu) / READINGS * 1e6


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=16, help="child processes (default: 16)")
    options = parser.parse_args()
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    children = [subprocess.Popen(sleep) for _ in range(options.workers)]
    try:
        time.sleep(1.0)
        print(f"{psutil.cpu_count()} cores, {len(psutil.pids())} processes, {options.workers} of them under this one\n")
        print("| sampler | every | median | largest | processor | share of a core |\n|---|---|---|---|---|---|")
        total = 0.0
        for sampler in all_samplers():
            wall, largest, cpu = cost(sampler)
            share = cpu / 1e6 / sampler.every_s
            total += share
            numbers = f"{wall:.0f} µs | {largest:.0f} µs | {cpu:.0f} µs | {share:.3%}"
            print(f"| {type(sampler).__name__} | {sampler.every_s:g} s | {numbers} |")
            missing = sampler.missing()
            if type(sampler).__name__ == "GpuSampler" and "power" in missing:
                print(f"| (GPU calls not measured: {missing['power']}) |")
            sampler.close()
        print(f"| all | | | | | {total:.3%} |")
    finally:
        for child in children:
            child.terminate()
            child.wait()


if __name__ == "__main__":
    main()
