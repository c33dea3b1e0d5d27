"""Measures the accuracy of memory accounts: `python tests/measurements/memory_peaks.py [--write]`.

Real trainings on the CPU are recorded, and the peak is predicted for other conditions; then they are recorded under
these conditions, and the predicted peak is compared with the recorded one. Problems are planted, and must be named. The
page goes to stdout, and with --write to tests/measurements/MEMORY.md; progress goes to stderr. Takes some minutes.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import torch  # noqa: E402
from memory_trainings.counted import Count, counted_by_readers, counted_by_torch  # noqa: E402
from memory_trainings.models import HELD_OUT, MODELS  # noqa: E402
from memory_trainings.record import OPTIMIZERS, PROBLEMS, Training, recorded  # noqa: E402
from pages import progress, publish  # noqa: E402

from tb_bottleneck.memory.findings import findings_of  # noqa: E402
from tb_bottleneck.memory.forecast.batch_scaling import samples_of  # noqa: E402
from tb_bottleneck.memory.forecast.forecasts import Forecast, Forecaster  # noqa: E402
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory  # noqa: E402
from tb_bottleneck.monitor.facts.cpu import cpu_name  # noqa: E402
from tb_bottleneck.trace.steps import find_steps  # noqa: E402
from tb_bottleneck.trace.trace import Trace  # noqa: E402

SAMPLES = 8
OTHER_SAMPLES = (4, 24)
TARGET = 0.05


@dataclass(frozen=True)
class Outcome:
    """A predicted peak against the recorded one, in bytes of tensors that the recording counts."""

    name: str
    change: str
    truth: float
    forecast: Forecast
    shift: float
    """Estimated bytes of the account, which are not recorded and would make the error look smaller."""

    @property
    def error(self) -> float:
        return (self.forecast.peak - self.shift) / self.truth - 1

    @property
    def inside(self) -> bool:
        return self.forecast.low - self.shift <= self.truth <= self.forecast.high - self.shift


def memory_of(trace: Trace) -> TraceMemory:
    """Returns the memory of a recording, after a check that the account sums to the allocator's bytes."""
    memory = trace_memory(trace)
    assert isinstance(memory, TraceMemory), memory
    account = memory.account
    assert sum(account.bytes_of.values()) - account.estimated == account.allocated == memory.in_use.max()
    return memory


def causes_of(memory: TraceMemory) -> str:
    """Returns the findings about the memory of a recording as text."""
    steps = find_steps(memory.trace)
    assert steps is not None
    return ", ".join(f"{it.cause} ({it.severity})" for it in findings_of(memory, steps)) or "-"


def batches(healthy: dict[str, str]) -> Iterator[Outcome]:
    """Yields the peak of each model with other batch sizes; the three optimizers take turns.

    The findings about the trainings, which have no problem, are put into `healthy`.
    """
    for number, name in enumerate(MODELS):
        progress("training", number + 1, len(MODELS))
        optimizer = list(OPTIMIZERS)[number % len(OPTIMIZERS)]
        memory = memory_of(recorded(Training(name, optimizer, SAMPLES)))
        healthy[name] = causes_of(memory)
        forecaster = Forecaster(memory, samples_of(memory))
        for samples in OTHER_SAMPLES:
            truth = memory_of(recorded(Training(name, optimizer, samples)))
            forecast = forecaster.batch(samples)
            assert forecast is not None, name
            change = f"{optimizer}, {SAMPLES} to {samples}"
            yield Outcome(name, change, truth.account.allocated, forecast, memory.account.estimated)


def other_changes() -> Iterator[Outcome]:
    """Yields the peak with checkpointing and with autocast."""
    plain = memory_of(recorded(Training("encoder", "AdamW", SAMPLES)))
    truth = memory_of(recorded(Training("encoder", "AdamW", SAMPLES, checkpointed=True)))
    forecast = Forecaster(plain, SAMPLES).checkpointing()
    assert forecast is not None
    yield Outcome("encoder", "checkpointing", truth.account.allocated, forecast, plain.account.estimated)
    for name in ("encoder", "gpt", "vision transformer", "mixer", "resnet", "mobilenet", "u-net", "text cnn"):
        plain = memory_of(recorded(Training(name, "SGD", SAMPLES)))
        truth = memory_of(recorded(Training(name, "SGD", SAMPLES, dtype=torch.bfloat16)))
        forecast = Forecaster(plain, SAMPLES).precision()
        assert forecast is not None
        yield Outcome(name, "bf16", truth.account.allocated, forecast, plain.account.estimated)


def planted() -> Iterator[tuple[str, str, str]]:
    """Yields model, problem and the findings for trainings with and without problems."""
    for name in ("encoder", "resnet", "gru"):
        for problem in PROBLEMS:
            trace = recorded(Training(name, "AdamW", SAMPLES, problem=problem), steps=6)
            yield name, problem or "none", causes_of(memory_of(trace))


def kinds() -> Iterator[str]:
    """Yields the rows of a table: what torch counts, and what the readers of traces and of snapshots tell."""
    errors: list[float] = []
    yield "| training | optimizer | parameters | gradients | optimizer state | activations |"
    yield "|---|---|---:|---:|---:|---:|"
    for number, name in enumerate(MODELS):
        progress("kinds", number + 1, len(MODELS))
        optimizer = list(OPTIMIZERS)[number % len(OPTIMIZERS)]
        training = Training(name, optimizer, SAMPLES)
        *told, peak = counted_by_readers(training)
        truth = counted_by_torch(training)
        cells = [_kind_cell(truth, told, field) for field in ("parameters", "gradients", "optimizer", "activations")]
        errors.append(max(abs(error) for it in told for error in it.difference(truth, peak).values()))
        yield f"| {name} | {optimizer} | {' | '.join(cells)} |"
    yield ""
    within = sum(error <= TARGET for error in errors)
    yield f"Largest difference of a kind, as a share of the peak: median {median(errors):.2%}, worst {max(errors):.2%};"
    yield f"{within} of {len(errors)} trainings within {TARGET:.0%}."


def _kind_cell(truth: Count, told: list[Count], field: str) -> str:
    return " / ".join(f"{getattr(it, field) / 1e3:,.0f}" for it in (truth, *told))


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """Yields the rows of a table."""
    yield "| training | change | recorded peak, kB | predicted, kB | error | inside the interval |"
    yield "|---|---|---:|---:|---:|---|"
    for it in outcomes:
        held_out = " (held out)" if it.name in HELD_OUT else ""
        predicted = (it.forecast.peak - it.shift) / 1e3
        inside = "yes" if it.inside else "no"
        sizes = f"{it.truth / 1e3:,.0f} | {predicted:,.0f}"
        yield f"| {it.name}{held_out} | {it.change} | {sizes} | {it.error:+.1%} | {inside} |"


def page() -> Iterator[str]:
    """Yields the whole page, line by line."""
    healthy: dict[str, str] = {}
    found = list(batches(healthy))
    errors = [abs(it.error) for it in found]
    unseen = [abs(it.error) for it in found if it.name in HELD_OUT]
    misses = [it for it in found if abs(it.error) > TARGET]
    yield "# Memory: predicted peaks and planted problems"
    yield ""
    yield "Written by `python tests/measurements/memory_peaks.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield "Peaks are of the bytes that the recording counts. On the CPU these leave out parameters and optimizer state"
    yield "from before the recording, which would make the errors smaller. On every recording, the categories sum to"
    yield "the allocator's bytes (checked while this page is written). For a GPU, see GPU.md."
    yield ""
    has_units = any(flag in Path("/proc/cpuinfo").read_text() for flag in ("avx512_bf16", "amx_bf16"))
    yield f"Written on an {cpu_name()} {'with' if has_units else 'without'} instructions for bf16. On other CPUs,"
    yield "libraries choose other algorithms with other buffers."
    yield ""
    yield "## Another batch size, from one recording"
    yield ""
    yield f"{len(MODELS)} trainings, {len(found)} predictions. Error: median {median(errors):.1%}, worst"
    yield f"{max(errors):.1%};"
    yield f"{len(found) - len(misses)} of {len(found)} within {TARGET:.0%}. Of the {len(unseen)} of held-out models,"
    yield f"{sum(error <= TARGET for error in unseen)} are within {TARGET:.0%}. Inside the interval:"
    yield f"{sum(it.inside for it in found)} of {len(found)}."
    yield ""
    missed = ", ".join(f"{it.name} ({it.change}): {it.error:+.1%}" for it in misses)
    yield f"Misses: {missed or 'none'}."
    yield ""
    yield from table(found)
    yield ""
    yield "## Checkpointing and mixed precision"
    yield ""
    others = list(other_changes())
    yield from table(others)
    yield ""
    outside = ", ".join(f"{it.name} ({it.change}): {it.error:+.1%}" for it in others if not it.inside)
    yield f"Outside the interval: {outside or 'none'}."
    yield "On a CPU without bf16 instructions, torch runs bf16 convolutions as aten::_slow_conv2d, whose workspace"
    yield "is not in a recording of 32-bit ones."
    yield ""
    yield "## What fills the memory, against torch's own count"
    yield ""
    yield "Bytes in kB: counted by torch (parameters, gradients and states themselves, and the storages that autograd"
    yield "saves) / by the reader of traces / by the reader of snapshots, from the same events with their stacks."
    yield "Gradients and activations are the most of a step."
    yield ""
    yield from kinds()
    yield ""
    yield "## Planted problems"
    yield ""
    yield "| training | planted | findings |"
    yield "|---|---|---|"
    for name, problem, causes in planted():
        yield f"| {name} | {problem} | {causes} |"
    yield ""
    yield "The resnet keeps outputs of 320 bytes per step, less than a thousandth of its peak; they are not named."
    yield ""
    yield "## Healthy trainings"
    yield ""
    accused = [name for name, causes in healthy.items() if "warning" in causes]
    yield f"{len(healthy)} trainings without a problem. With a warning: {', '.join(accused) or 'none'}."
    yield ""
    yield "| training | findings |"
    yield "|---|---|"
    for name, causes in healthy.items():
        yield f"| {name} | {causes} |"


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Measures the error of predicted peaks of the memory.")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/MEMORY.md as well")
    publish(page(), HERE / "MEMORY.md", parser.parse_args().write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
