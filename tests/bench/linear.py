"""Checks that the cost of a diagnosis grows linearly: `python tests/bench/linear.py [--of trace|job|telemetry]`.

    trace       MB of JSON: a real trace, repeated in time (tile.py)
    job         ranks, each with the same trace of 10 MB (jobs.py)
    telemetry   steps of a monitored run: 1,000 drawn steps of 0.1 s, repeated in time

Each row is a whole `diagnose` of one size: medians of CPU time and of the peak memory of all processes together. The
exponents say how the cost that depends on the size grows since the two sizes before: log((c - b) / (b - a)) divided by
the logarithm of the ratio of the sizes. Growth in proportion to the size has the exponent 1.
"""

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from jobs import SOURCE, rank_files, used_by
from read import CHECKOUT, a_source, traces_of

sys.path.append(str(CHECKOUT / "tests"))
from helpers.simulated_telemetry import SimulatedPhase, simulate
from helpers.telemetry_files import NAME, write

from tb_bottleneck.schema.telemetry_pb2 import Packet

OURS = [sys.executable, "-m", "tb_bottleneck", "diagnose", "--json", "--no-cache"]
RANK_MB = 10.0
DRAWN_STEPS, STEP_S = 1_000, 0.1
PART_NS = DRAWN_STEPS * STEP_S * 1.2e9  # longer than the drawn steps with their warm-up


def traces(sizes: list[int], scratch: Path, source: Path | None) -> Iterator[Path]:
    """Yields a trace per size in MB."""
    yield from traces_of(source or a_source(), [float(size) for size in sizes], scratch)


def jobs(sizes: list[int], scratch: Path, source: Path | None) -> Iterator[Path]:
    """Yields a folder per number of ranks."""
    trace = source or Path(os.environ.get("TB_BOTTLENECK_TRACES", "."), SOURCE)
    for ranks in sizes:
        folder = scratch / f"job-{ranks}"
        if not folder.exists():
            rank_files(trace, folder, ranks, RANK_MB)
        yield folder


def runs(sizes: list[int], scratch: Path, _source: Path | None) -> Iterator[Path]:
    """Yields a folder with the telemetry of a run per number of steps."""
    for steps in sizes:
        folder = scratch / f"telemetry-{steps}"
        if not folder.exists():
            context, *packets = simulate([SimulatedPhase(seconds=DRAWN_STEPS * STEP_S)])
            write(folder / NAME, [context])
            for part in range(steps // DRAWN_STEPS):
                write(folder / NAME, [_later(packet, part, len(packets)) for packet in packets])
        yield folder


def _later(packet: Packet, part: int, packets: int) -> Packet:
    """Returns the packet as part number `part` of a run; each part has as many as `packets` packets."""
    moved = Packet.FromString(packet.SerializeToString())
    moved.sequence += part * packets
    for times in (moved.steps.end_unix_ns, *(series.unix_ns for series in moved.series)):
        times[:] = [each + part * PART_NS for each in times]
    moved.steps.number[:] = [each + part * DRAWN_STEPS for each in moved.steps.number]
    return moved


SIZES: dict[str, tuple[str, Callable[[list[int], Path, Path | None], Iterator[Path]], list[int]]] = {
    "trace": ("MB", traces, [50, 500, 5_000]),
    "job": ("ranks", jobs, [1, 32, 1_000]),
    "telemetry": ("steps", runs, [1_000, 10_000, 100_000, 1_000_000]),
}


def exponent(sizes: list[int], costs: list[float]) -> str:
    """Returns the exponent of the last increase of `costs`, as text; empty for fewer than three sizes."""
    if len(costs) < 3 or costs[-1] <= costs[-2] or costs[-2] <= costs[-3]:
        return ""
    return f"{math.log((costs[-1] - costs[-2]) / (costs[-2] - costs[-3])) / math.log(sizes[-1] / sizes[-2]):.2f}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=SIZES, default="trace")
    parser.add_argument("--trace", type=Path, help="the trace that is repeated, or given to each rank")
    parser.add_argument("--sizes", type=int, nargs="+", help="MB, ranks or steps, smallest first")
    parser.add_argument("--repeats", type=int, default=3)
    scratch = Path(tempfile.gettempdir()) / "tb_bottleneck-bench"
    parser.add_argument("--scratch", type=Path, default=scratch, help="for the recordings (%(default)s)")
    options = parser.parse_args()
    unit, recordings, usual = SIZES[options.of]
    sizes, cpu, peak = options.sizes or usual, list[float](), list[float]()
    print(f"| {unit} | wall s | CPU s | exponent | peak MB | exponent |\n|---:|---:|---:|---:|---:|---:|")
    for number, path in enumerate(recordings(sizes, options.scratch, options.trace), 1):
        used = [used_by([*OURS, str(path)], options.scratch / "linear.log") for _ in range(options.repeats)]
        if not all(each.ok for each in used):
            sys.exit(f"{path} could not be diagnosed; the output is in {options.scratch / 'linear.log'}")
        cpu.append(median(each.cpu_seconds for each in used))
        peak.append(median(each.total_mb for each in used))
        cells = [f"{sizes[number - 1]:,}", f"{median(each.seconds for each in used):.1f}", f"{cpu[-1]:.1f}"]
        cells += [exponent(sizes[:number], cpu), f"{peak[-1]:.0f}", exponent(sizes[:number], peak)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
