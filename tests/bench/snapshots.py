"""Time and memory for reading a large allocator snapshot: `python tests/bench/snapshots.py [--events N]`.

The snapshot is simulated, with 36 frames per allocation as in a real training, and written by Python's pickle. It is
read in a process of its own. 9,800,000 events are 1 GB; writing or reading them takes about 13 GB of memory.
"""

import argparse
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from helpers.snapshots import random_snapshot  # noqa: E402

_READ = """
import resource, sys, time
from tb_bottleneck.sources.snapshot.allocator_snapshot import read_snapshot
wall = time.perf_counter()
events = len(read_snapshot(sys.argv[1]).entries["size"])
child = resource.getrusage(resource.RUSAGE_CHILDREN)  # the process that read the file
print(events, time.perf_counter() - wall, child.ru_utime + child.ru_stime, child.ru_maxrss / 1e3)
"""


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description="Measures the reading of a large allocator snapshot.")
    parser.add_argument("--events", type=int, default=1_000_000, help="allocator calls (default: 1,000,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        with open(path, "wb") as file:
            pickle.dump(random_snapshot(options.events, stacks=3_000, depth=36), file, protocol=4)
        command = [sys.executable, "-c", _READ, str(path)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT).stdout
        events, wall, cpu, peak = map(float, output.split())
        size = path.stat().st_size / 1e6
    print(f"{events:,.0f} events, {size:,.0f} MB: {wall:.1f} s wall, {cpu:.1f} s CPU, {peak:,.0f} MB at the peak")
    return 0


if __name__ == "__main__":
    sys.exit(main())
