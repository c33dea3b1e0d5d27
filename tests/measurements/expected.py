"""Measures the accuracy of expected times on another device: `python expected.py [--runs N] [--write]`.

Trainings are simulated twice: on one device, and on another with its own kernel times (simulate/other_device.py). Both
are recorded and compared; the expected time from the first recording and the two devices' data sheets is compared with
the measurement of the second. The page also contains recorded pairs, of the demo and (if the environment variable
TB_BOTTLENECK_TRACES names their folder) public ones. The table goes to stdout, and with --write to EXPECTED.md.
Everything is drawn from seeds: the same code gives the same table.
"""

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from pages import progress, publish  # noqa: E402
from simulate.kineto import DIALECTS, Recording, kineto_json  # noqa: E402
from simulate.machine import Machine  # noqa: E402
from simulate.other_device import JITTER, MISSED, THERE, OtherDevice  # noqa: E402
from simulate.training import program_of  # noqa: E402
from simulate.variation import HOST  # noqa: E402
from simulate.workload import Workload, random_workload  # noqa: E402

from tb_bottleneck.commands.arguments import open_run  # noqa: E402
from tb_bottleneck.comparison.compare import compare  # noqa: E402
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, judge_run  # noqa: E402
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if  # noqa: E402
from tb_bottleneck.schema.comparison_pb2 import Comparison  # noqa: E402

# Held out: defects were looked for with other seeds. When a miss of the page is fixed, use new seeds.
FIRST_SEED = 2**23 + 2**16
DEFAULT_RUNS = 300
PAGE = HERE / "EXPECTED.md"
COLUMNS = "pairs | median | mean size | 90 % within | worst | in the interval | width | by kernels alone"
RECORDED = HERE.parents[1] / "demo" / "recorded"


@dataclass(frozen=True)
class Pair:
    """One training on two devices, compared; `error` is expected time / measured time - 1."""

    seed: int
    device: str
    comparison: Comparison

    @property
    def error(self) -> float:
        return float(self.comparison.expected.b_ns / self.comparison.b_ns - 1)

    @property
    def naive(self) -> float:
        """The error of the assumption that the whole step is device work, which gains what the kernels gain."""
        return float(self.comparison.a_ns / self.comparison.expected.kernels_speedup / self.comparison.b_ns - 1)

    @property
    def inside(self) -> bool:
        """True if the measured speedup is in the predicted interval."""
        return bool(self.comparison.expected.low <= self.comparison.speedup <= self.comparison.expected.high)


def pair(workload: Workload, device: str, seed: int, missed: float = MISSED, host: float = HOST) -> Pair:
    """Simulates, records and compares one pair."""
    there = OtherDevice(device, seed, missed, host)
    recording = Recording(DIALECTS[3], stacks=workload.stacks, distributed=workload.buckets > 0)
    program = program_of(workload)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{side}.pt.trace.json" for side in ("a", "b")]
        paths[0].write_text(kineto_json(Machine(program).run(), recording))
        paths[1].write_text(there.relabelled(kineto_json(Machine(there.program(program)).run(), recording)))
        return Pair(seed, device, compare([str(paths[0])], [str(paths[1])], ("a", "b")))


def pairs(runs: int) -> tuple[list[Pair], int]:
    """Returns the pairs that could be compared, and the number of the others."""
    compared = []
    for number in range(runs):
        progress("pair", number + 1, runs)
        seed = FIRST_SEED + number
        compared.append(pair(random_workload(seed), THERE[number % len(THERE)], seed))
    usable = [result for result in compared if result.comparison.HasField("expected")]
    return usable, len(compared) - len(usable)


def page(runs: int) -> Iterator[str]:
    """Yields the page, line by line."""
    predicted, refused = pairs(runs)
    yield "# The speed of another device, expected and measured"
    yield ""
    yield "Written by `python tests/measurements/expected.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield "Read them with care. No other device was available: the second one is simulated, and its true times are"
    yield "drawn from the data sheets that the prediction uses too. All kernels of a training deviate from them"
    yield f"together, by {MISSED:.1%} on average, the published error of such predictions (Habitat, ATC'21), and each"
    yield f"kernel by as much on its own. The host is faster or slower by {HOST:.0%} at one standard deviation, as two"
    yield f"runs on one machine differ, and each piece of its work by up to {JITTER:.0%}. So this is the effect of such"
    yield "errors on a whole step, including the work that the host hides or reveals, and the coverage of the 90 %"
    yield "interval."
    yield ""
    yield f"## {len(predicted)} simulated pairs"
    yield ""
    yield f"{refused} more gave no prediction. Errors are expected time / measured time - 1; sizes are absolute."
    yield ""
    yield from table(predicted)
    yield ""
    yield from recorded_pairs()


def table(pairs: list[Pair]) -> Iterator[str]:
    """Yields the errors, by device and in total."""
    yield f"| from an A100 to | {COLUMNS} |"
    yield "|---|" + "---:|" * (COLUMNS.count("|") + 1)
    by_device = defaultdict(list)
    for each in pairs:
        by_device[each.device].append(each)
    for device, group in sorted(by_device.items()):
        yield _row(device, group)
    yield _row("**all**", pairs)
    yield ""
    yield f"| predicted by | {COLUMNS} |"
    yield "|---|" + "---:|" * (COLUMNS.count("|") + 1)
    by_basis = defaultdict(list)
    for each in pairs:
        by_basis[each.comparison.expected.basis].append(each)
    for basis, group in sorted(by_basis.items()):
        yield _row(basis, group)
    yield ""
    yield "The last column is the mean size of the error if the whole step is expected to gain what its kernels gain."


def _row(name: str, pairs: list[Pair]) -> str:
    errors = sorted((each.error for each in pairs), key=abs)
    middle = sorted(errors)[len(errors) // 2]
    sizes = [abs(error) for error in errors]
    inside = sum(each.inside for each in pairs) / len(pairs)
    naive = fmean(abs(each.naive) for each in pairs)
    most = sizes[min(int(len(sizes) * 0.9), len(sizes) - 1)]
    worst = errors[-1]
    width = median(each.comparison.expected.high / each.comparison.expected.low for each in pairs)
    errors_text = f"{middle:+.1%} | {fmean(sizes):.1%} | {most:.1%} | {worst:+.1%}"
    shown = f"{errors_text} | {inside:.0%} | {width:.2f} | {naive:.0%}"
    return f"| {name} | {len(pairs)} | {shown} |"


def recorded_pairs() -> Iterator[str]:
    """Yields predicted and measured effects of a change, from recordings of the demo and public ones."""
    yield "## Recorded pairs"
    yield ""
    yield "The prediction of a change from the first recording, and the measurement of the second. The first row was"
    yield "recorded on a CPU by the demo (recorded.json contains the versions), which also measured both trainings"
    yield "without a profiler; the others are public recordings (of GPUs, with their own profiler), which are not part"
    yield "of this project."
    yield ""
    yield "| recorded | change | expected | interval | measured | without a profiler | error of the time |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    yield from _row_of("the demo's loader", _demo("slow"), _demo("fixed"), WhatIfOptions(workers=WORKERS))
    for name, a, b, change in PUBLIC:
        yield from _row_of(name, _public(a), _public(b), change)


def _row_of(name: str, a: ComparedRun | None, b: ComparedRun | None, change: WhatIfOptions) -> Iterator[str]:
    """Yields one row; a placeholder if a recording is missing or gets no verdict."""
    if a is None or b is None:
        yield f"| {name} | not available | | | | | |"
        return
    prediction = what_if(a, change)
    if not prediction.HasField("after"):
        yield f"| {name} | none: {prediction.headline} | | | | | |"
        return
    size = change.batch or 1
    after, there = prediction.after, b.step_ns / size
    times = [side.report.unprofiled.step_ns for side in (a, b)]
    plain = f"{times[0] / times[1]:.2f}x" if times[0] and times[1] else ""
    expected = f"{after.speedup:.2f}x | {after.low:.2f} to {after.high:.2f}"
    yield (
        f"| {name} | {prediction.changes[0]} | {expected} | {prediction.step_ns / there:.2f}x | {plain} "
        f"| {after.step_ns / there - 1:+.1%} |"
    )


WORKERS = 2
PUBLIC = (
    (
        "ResNet-50 on a V100, 0 workers",
        "kineto_resnet50_nw0_v19_a",
        "kineto_resnet50_nw4_v19_a",
        WhatIfOptions(workers=4),
    ),
    ("particle transformer on an A100, batch 2", "ptf_bs2_steady", "ptf_bs16_steady", WhatIfOptions(batch=16)),
    ("particle transformer on an A100, batch 2", "ptf_bs2_steady", "ptf_bs128_steady_a", WhatIfOptions(batch=128)),
    ("particle transformer on an A100, batch 16", "ptf_bs16_steady", "ptf_bs128_steady_a", WhatIfOptions(batch=128)),
)


def _demo(which: str) -> ComparedRun | None:
    side = open_run(str(RECORDED / "loader_in_main_process" / which))
    return side if isinstance(side, ComparedRun) else None


def _public(name: str) -> ComparedRun | None:
    path = Path(os.environ.get("TB_BOTTLENECK_TRACES", "")) / f"{name}.json.gz"
    side = judge_run(name, [str(path)]) if path.is_file() else None
    return side if isinstance(side, ComparedRun) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="simulated pairs (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"also write {PAGE.name}")
    options = parser.parse_args()
    publish(page(options.runs), PAGE, options.write)


if __name__ == "__main__":
    main()
