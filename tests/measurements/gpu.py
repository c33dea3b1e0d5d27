"""Measures the product on a GPU: `python gpu.py --record FOLDER`, then `python gpu.py FOLDER [--write]`.

The first command needs a GPU, for some minutes: it records trainings and times them with other settings. The second
compares the recordings with the true figures, on any machine. The page goes to stdout, and with --write to
tests/measurements/GPU.md.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from memory_trainings.counted import KINDS, Count, most_of_kinds  # noqa: E402
from pages import publish  # noqa: E402

from tb_bottleneck import diagnose  # noqa: E402
from tb_bottleneck.comparison.runs.compared_run import judge_run  # noqa: E402
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if  # noqa: E402
from tb_bottleneck.memory.forecast.batch_scaling import samples_of  # noqa: E402
from tb_bottleneck.memory.forecast.forecasts import Forecast, Forecaster  # noqa: E402
from tb_bottleneck.memory.snapshot.snapshot_findings import forecasts_of_snapshot  # noqa: E402
from tb_bottleneck.memory.snapshot.snapshot_memory import snapshot_memory  # noqa: E402
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory  # noqa: E402
from tb_bottleneck.sources.snapshot.allocator_snapshot import snapshot_in  # noqa: E402
from tb_bottleneck.trace.trace import load  # noqa: E402

Rows = dict[str, dict[str, Any]]
GB = 1e9
DEVICE_BOUND = 0.9
"""Share of the step in which the device works, from which on its kernels decide the gain of fused attention."""


class Errors:
    """Predictions against true values."""

    def __init__(self) -> None:
        self.errors: list[float] = []
        self.inside = 0

    def row(self, true: float, expected: float, low: float, high: float, unit: str = "") -> str:
        """Counts a prediction, and returns its cells."""
        self.errors.append(abs(expected / true - 1))
        self.inside += low <= true <= high
        mark = "" if low <= true <= high else " (outside)"
        return f"{true:.2f}{unit} | {expected:.2f} | {low:.2f} to {high:.2f}{mark} | {expected / true - 1:+.0%} |"

    def __str__(self) -> str:
        if not self.errors:
            return "No predictions."
        errors = f"Error: median {median(self.errors):.0%}, worst {max(self.errors):.0%}"
        return f"{len(self.errors)} predictions. {errors}; inside: {self.inside} of {len(self.errors)}."


def read(folder: Path, part: str) -> Rows:
    """Returns the true figures of a part."""
    rows: Rows = json.loads((folder / f"{part}.json").read_text())
    return rows


def trace_in(folder: Path) -> str:
    """Returns the path of the only trace in a folder."""
    (path,) = folder.rglob("*.pt.trace.json.gz")
    return str(path)


# --- The parts of the page ---


def settings(folder: Path) -> Iterator[str]:
    """Yields what-if against trainings with other settings."""
    errors, lines = Errors(), []
    for name, row in read(folder, "settings").items():
        run = judge_run(name, [trace_in(folder / "settings" / name)])
        for change, after in row.items():
            times = int(change.removeprefix("batch x")) if change.startswith("batch x") else 1
            if change in ("bf16", "tf32"):
                options = WhatIfOptions(precision=change)
            elif times > 1:
                options = WhatIfOptions(batch=row["samples"] * times)
            else:
                continue
            told, true = what_if(run, options).after, times * row["base"] / after
            lines.append(f"| {name} | {change} | {errors.row(true, told.speedup, told.low, told.high)}")
    yield "## Another precision or batch (`what-if`)"
    yield ""
    yield f"{errors} Samples per second, after / before."
    yield ""
    yield "| training | change | measured | predicted | interval | error |"
    yield "|---|---|---:|---:|---|---:|"
    yield from lines
    yield ""


def attention(folder: Path) -> Iterator[str]:
    """Yields the gains of fused attention."""
    half, single, lines = Errors(), Errors(), []
    for name, row in read(folder, "attention").items():
        report = diagnose(trace_in(folder / "attention" / name))
        gains = [it.speedup for it in report.findings if it.cause == "unfused_attention"]
        idle = sum(it.share for it in report.account if it.regime in ("launch", "host", "sync"))
        true = row["slow_ms"] / row["fused_ms"]
        if idle > 1 - DEVICE_BOUND:
            continue
        if not gains:
            lines.append(f"| {name} | {true:.2f} | not a finding | | |")
            continue
        errors = single if "_tf32_" in name else half
        lines.append(f"| {name} | {errors.row(true, gains[0].expected, gains[0].low, gains[0].high)}")
    yield "## Fused attention"
    yield ""
    yield "Transformers with attention by single operators, and with scaled_dot_product_attention. Left out: trainings"
    yield f"whose device is idle for more than {1 - DEVICE_BOUND:.0%} of the recorded time: there, the host decides."
    yield ""
    yield f"In 16 bits: {half}"
    yield ""
    yield "In TF32, the fused kernel multiplies without TF32 and may be slower. No loss is predicted, as a user would"
    yield f"take the change back. {single}"
    yield ""
    yield "| width x heads x layers x samples x tokens | measured gain | predicted | interval | error |"
    yield "|---|---:|---:|---|---:|"
    yield from lines
    yield ""


def kinds(folder: Path) -> Iterator[str]:
    """Yields what fills the memory, by torch and by both readers."""
    errors, lines = [], []
    for name, row in read(folder, "memory").items():
        truth = Count(**{it: row["truth"][it] for it in ("parameters", "gradients", "optimizer", "activations")})
        with gzip.open(folder / "memory" / f"{name}.pickle.gz") as file:
            memories = [snapshot_memory(snapshot_in(BytesIO(file.read())))]
        if (folder / "memory" / name).is_dir():
            memory = trace_memory(load(trace_in(folder / "memory" / name)))
            assert isinstance(memory, TraceMemory)
            memories.append(memory)
        told = [most_of_kinds(memory) for memory in memories]
        errors.append(max(abs(it) for each in told for it in each.difference(truth, row["peak"]).values()))
        cells = (
            " / ".join(f"{getattr(it, kind) / GB:.2f}" for it in (truth, *told))
            for kind in ("parameters", "gradients", "optimizer", "activations")
        )
        lines.append(f"| {name} | {row['peak'] / GB:.2f} | {' | '.join(cells)} |")
    yield "## What fills the memory"
    yield ""
    yield "GB: counted by torch / by the reader of snapshots / by the reader of traces, if a trace was recorded."
    yield f"Largest difference of a kind, as a share of the peak: median {median(errors):.1%}, worst {max(errors):.1%}."
    yield ""
    yield f"| training | peak | {' | '.join(kind.value for kind in KINDS)} |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield from lines
    yield ""


def peaks(folder: Path) -> Iterator[str]:
    """Yields forecasts of the peak against trainings with other settings."""
    errors, lines = {"trace": Errors(), "snapshot": Errors()}, []
    for name, row in read(folder, "memory").items():
        for change, forecast, source, reserved in forecasts(folder / "memory", name):
            if change in row and forecast is not None:
                scale = row["peak"] / reserved / GB
                low, peak, high = (each * scale for each in (forecast.low, forecast.peak, forecast.high))
                cells = errors[source].row(row[change] / GB, peak, low, high)
                lines.append(f"| {name} | {source} | {change} | {cells}")
    yield "## Peaks with other settings"
    yield ""
    yield "GB in tensors. The forecasts are about the memory that the allocator has from the driver; they are"
    yield "multiplied by allocated / reserved bytes at the recorded peak."
    yield ""
    yield f"From traces: {errors['trace']}"
    yield ""
    yield f"From snapshots: {errors['snapshot']}"
    yield ""
    yield "| training | from | change | measured | predicted | interval | error |"
    yield "|---|---|---|---:|---:|---|---:|"
    yield from lines


def forecasts(folder: Path, name: str) -> Iterator[tuple[str, Forecast | None, str, int]]:
    """Yields change, forecast, source, and the bytes of the recorded peak that the allocator has from the driver."""
    if (folder / name).is_dir():
        memory = trace_memory(load(trace_in(folder / name)))
        assert isinstance(memory, TraceMemory)
        samples, peak = samples_of(memory), memory.account.peak
        found = Forecaster(memory, samples)
        if samples is not None:
            yield "batch x2", found.batch(2 * samples), "trace", peak
            yield "batch /2", found.batch(samples // 2), "trace", peak
        yield "checkpointing", found.checkpointing(), "trace", peak
        yield "bf16", found.precision(), "trace", peak
    with gzip.open(folder / f"{name}.pickle.gz") as file:
        snapshot = snapshot_memory(snapshot_in(BytesIO(file.read())))
    titles = {
        "double_batch": "batch x2",
        "half_batch": "batch /2",
        "fused_attention": "sdpa",
        "precision_of_32_bits": "bf16",
    }
    for forecast in forecasts_of_snapshot(snapshot):
        yield titles.get(forecast.change, forecast.change), forecast, "snapshot", snapshot.account.peak


def page(folder: Path) -> Iterator[str]:
    """Yields the whole page, line by line."""
    told = json.loads((folder / "device.json").read_text())
    yield "# On a GPU: predictions and true values"
    yield ""
    yield "Written by `python tests/measurements/gpu.py FOLDER --write`, from recordings with `--record FOLDER`."
    yield "Figures as they come; what is left out is stated."
    yield ""
    yield f"{told['device']}, torch {told['torch']}. Times are of steps without a profiler. Nine pairs of the demo"
    yield "are of the same kind of machine: demo/README.md."
    yield ""
    yield "A first version of --record made these recordings. It differs in details: lstm_sgd had 20,000 words,"
    yield "and the inputs of the attention were drawn once. The present version has not run on a GPU yet."
    yield ""
    for part in (settings, attention, kinds, peaks):
        yield from part(folder)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--record", action="store_true", help="record into the folder; needs a GPU")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/GPU.md as well")
    options = parser.parse_args()
    if options.record:
        from gpu_trainings.record import main as record

        return record(options.folder)
    publish(page(options.folder), HERE / "GPU.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
