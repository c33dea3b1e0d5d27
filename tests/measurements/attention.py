"""Measures the gain of fused attention against its prediction: `python tests/measurements/attention.py [--write]`.

Transformers are trained, and run without gradients, on the CPU with attention by single operators and with
scaled_dot_product_attention. The gain is predicted from a recording of the former. The page goes to stdout, and with
--write to tests/measurements/ATTENTION.md; progress goes to stderr. Takes some minutes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import torch  # noqa: E402
from pages import progress, publish  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402

from tb_bottleneck import diagnose, trace_handler  # noqa: E402

ROUNDS, STEPS, SETTLING = 3, 8, 6
"""Each round times both variants, in new processes: what a process allocated before changes its page faults."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer and its batch."""

    width: int
    heads: int
    layers: int
    samples: int
    tokens: int


SHAPES = (
    Shape(128, 4, 2, 4, 512),
    Shape(256, 8, 2, 2, 768),
    Shape(192, 6, 3, 8, 256),
    Shape(64, 2, 2, 4, 1024),
    Shape(256, 4, 2, 16, 128),
    Shape(384, 6, 1, 2, 1024),
    Shape(128, 2, 4, 8, 384),
)


class Attention(nn.Module):
    """Self-attention, by single operators or fused."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.fused = heads, fused

    def forward(self, hidden):
        samples, tokens, width = hidden.shape
        size = width // self.heads
        parts = self.inputs(hidden).chunk(3, -1)
        query, key, value = (part.view(samples, tokens, self.heads, size).transpose(1, 2) for part in parts)
        mixed = self.mixed(query, key, value)
        return self.output(mixed.transpose(1, 2).reshape(samples, tokens, width))

    def mixed(self, query, key, value):
        """Returns the values, weighted by attention: shape (samples, heads, tokens, size)."""
        if self.fused:
            return F.scaled_dot_product_attention(query, key, value)
        return torch.softmax(query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5, -1) @ value


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.attention, self.before, self.after = (
            Attention(width, heads, fused),
            nn.LayerNorm(width),
            nn.LayerNorm(width),
        )
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden):
        hidden = hidden + self.attention(self.before(hidden))
        return hidden + self.mlp(self.after(hidden))


class Work:
    """Steps of one variant. `dtype` is bf16 (of the model), autocast (in bf16) or another text for 32 bits."""

    def __init__(self, shape: Shape, trains: bool, fused: bool, device: str = "cpu", dtype: str = "") -> None:
        torch.manual_seed(0)
        self.shape, self.trains, self.device, self.autocast = shape, trains, device, dtype == "autocast"
        with torch.device(device):
            self.model = nn.Sequential(*(Block(shape.width, shape.heads, fused) for _ in range(shape.layers)))
        if dtype == "bf16":
            self.model.bfloat16()
        self.dtype = next(self.model.parameters()).dtype
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def step(self) -> float:
        """Returns the CPU time of a step in s."""
        size = (self.shape.samples, self.shape.tokens, self.shape.width)
        inputs = torch.randn(*size, device=self.device, dtype=self.dtype)
        began = time.process_time()
        autocast = torch.autocast(self.device, torch.bfloat16, enabled=self.autocast)
        with torch.set_grad_enabled(self.trains), autocast:
            loss = self.model(inputs).float().square().mean()
        if self.trains:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return time.process_time() - began


def measured(shape: Shape, trains: bool) -> float:
    """Returns the gain: the variants are timed in turn."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for fused in times:
            times[fused] += in_own_process(timed, shape, trains, fused)
    return median(times[False]) / median(times[True])


def in_own_process(work, *arguments):
    """Returns the result of a call in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def timed(shape: Shape, trains: bool, fused: bool) -> list[float]:
    """Returns the times of some steps in s."""
    torch.set_num_threads(1)
    work = Work(shape, trains, fused)
    return [work.step() for _ in range(SETTLING + STEPS)][SETTLING:]


def predicted(shape: Shape, trains: bool) -> tuple[float, float, float] | None:
    """Returns the expected speedup of the finding and its interval; None if attention is not named."""
    torch.set_num_threads(1)
    work = Work(shape, trains, fused=False)
    with tempfile.TemporaryDirectory() as folder:
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(skip_first=SETTLING, wait=0, warmup=1, active=STEPS, repeat=1),
            on_trace_ready=trace_handler(folder),
            record_shapes=True,
        ) as profiler:
            for _ in range(SETTLING + 1 + STEPS + 1):
                work.step()
                profiler.step()
        (path,) = Path(folder).iterdir()
        findings = diagnose(str(path)).findings
    gains = [it.speedup for it in findings if it.cause == "unfused_attention" and it.speedup.basis == "replay"]
    return (gains[0].expected, gains[0].low, gains[0].high) if gains else None


def page() -> Iterator[str]:
    """Yields the whole page, line by line."""
    errors, inside, count = [], 0, 2 * len(SHAPES)
    rows = []
    for number, (shape, trains) in enumerate((shape, trains) for shape in SHAPES for trains in (True, False)):
        progress("attention", number + 1, count)
        gain, told = measured(shape, trains), in_own_process(predicted, shape, trains)
        name = f"{shape.layers} x {shape.width}, {shape.heads} heads, {shape.samples} x {shape.tokens} tokens"
        if told is None:
            rows.append(f"| {name} | {'training' if trains else 'inference'} | {gain:.2f} | not predicted | | |")
            continue
        expected, low, high = told
        error = expected / gain - 1
        errors.append(abs(error))
        inside += low <= gain <= high
        interval = f"{low:.2f} to {high:.2f}"
        rows.append(
            f"| {name} | {'training' if trains else 'inference'} | {gain:.2f} | {expected:.2f} | {interval} "
            f"| {error:+.0%} |"
        )
    yield "# Fused attention: predicted and measured gains"
    yield ""
    yield "Written by `python tests/measurements/attention.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield f"Transformers on the CPU, one thread, torch {torch.__version__}. The gain is the CPU time per step with"
    yield "single operators over that with scaled_dot_product_attention, in turn. The prediction is that of the"
    yield "finding, from a recording with single operators. For a GPU, see GPU.md."
    yield ""
    yield f"{len(errors)} of {count} predicted. Error: median {median(errors):.0%}, worst {max(errors):.0%}; inside the"
    yield f"interval: {inside} of {len(errors)}."
    yield ""
    yield "| layers x width, batch | work | measured gain | predicted | interval | error |"
    yield "|---|---|---:|---:|---|---:|"
    yield from rows


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Measures the gain of fused attention against its prediction.")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/ATTENTION.md as well")
    publish(page(), HERE / "ATTENTION.md", parser.parse_args().write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
