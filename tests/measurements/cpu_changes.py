"""Measures changes on the CPU whose gain cannot be simulated: `python tests/measurements/cpu_changes.py [--only KIND]`.

Prints the lines of tb_bottleneck/knowledge/measured_changes.toml: the share of the cause in a recording of the slow
half, and the step time before / after the change without a profiler. Both halves run in turn, in their own processes.

`--only compilation` measures what torch.compile brings to trainings that have nothing to fix, and prints comments.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from statistics import median

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.measurements.trainings.cases import TRAININGS  # noqa: E402  # the root is not on the path of a script

ROUNDS = {"recompilation": 2, "synced_portions": 3, "compilation": 5}
SETTLING = {"recompilation": 5, "synced_portions": 5, "compilation": 40}
HEALTHY = (
    "gan/losses_kept",
    "rl/large_learner",
    "huggingface/logging_each_step",
    "lightning/logged_loss",
    "lstm/clipped",
    "vit/printed_loss",
    "audio/batched_spectrogram",
)
"""Trainings of tests/measurements/trainings with nothing to fix."""
# kind -> variants: (name, width, layers, rows, every: a new length each `every` steps | portions of a batch, backend)
VARIANTS = {
    "recompilation": {
        "narrow": (64, 4, 64, 1, "aot_eager"),
        "wide": (512, 8, 256, 1, "aot_eager"),
        "in every third step": (128, 8, 64, 3, "aot_eager"),
        "inductor": (128, 2, 64, 1, "inductor"),
        "without a backend": (256, 12, 64, 1, "eager"),
    },
    "synced_portions": {
        "two portions": (512, 6, 64, 2, ""),
        "four portions": (512, 6, 64, 4, ""),
        "eight portions": (256, 12, 64, 8, ""),
        "large batches": (512, 6, 512, 4, ""),
        "wide": (1024, 4, 128, 4, ""),
    },
    "compilation": dict.fromkeys(HEALTHY, (0, 0, 0, 0, "inductor")),
}
STEPS = {"recompilation": 20, "synced_portions": 40, "compilation": 70}


def recompilation(variant: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a compiled perceptron on batches of changing length."""
    width, layers, rows, every, backend = VARIANTS["recompilation"][variant]
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1000
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(layers)))
    compiled = torch.compile(model, dynamic=False, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        length = rows + (0 if fixed else step // every)
        optimizer.zero_grad()
        compiled(torch.randn(length, width)).square().mean().backward()
        optimizer.step()
        on_step()


def synced_portions(variant: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a data-parallel perceptron that exchanges the gradients of each portion of a batch."""
    width, layers, rows, portions, _ = VARIANTS["synced_portions"][variant]
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        for number, part in enumerate(torch.randn(rows, width).chunk(portions), 1):
            with parallel.no_sync() if fixed and number < portions else nullcontext():
                parallel(part).square().mean().backward()
        optimizer.step()
        on_step()


def compilation(variant: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Runs a healthy training of tests/measurements/trainings, with its outermost modules compiled if `fixed`."""
    training, problem = variant.split("/")
    module, function = TRAININGS[training]
    if fixed:
        compile_outermost_modules()
    getattr(import_module(f"tests.measurements.trainings.{module}"), function)(problem, False, steps, on_step)


def compile_outermost_modules() -> None:
    """Lets each module that no other module calls compile itself at its first call."""
    call, depth, compiled = nn.Module.__call__, 0, set[int]()

    def compile_and_call(self: nn.Module, *arguments: object, **options: object) -> object:
        nonlocal depth
        if depth == 0 and id(self) not in compiled and any(True for _ in self.parameters()):
            compiled.add(id(self))
            self.compile()
        depth += 1
        try:
            return call(self, *arguments, **options)
        finally:
            depth -= 1

    nn.Module.__call__ = compile_and_call


def half(kind: str, variant: str, fixed: bool, folder: str, rank: int, meeting: str) -> None:
    """Trains one half in this process, recorded into `folder` if there is one. Prints the mean step time in ms."""
    from tb_bottleneck import Monitor

    torch.set_num_threads(1)
    if kind == "synced_portions":
        distributed.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=2)
    ends: list[float] = []
    with Monitor(folder, captures=int(kind == "synced_portions"), every_s=1.0) if folder else nullcontext():
        globals()[kind](variant, fixed, STEPS[kind] * (2 if folder else 1), lambda: ends.append(time.perf_counter()))
    settling = SETTLING[kind]
    print((ends[-1] - ends[settling - 1]) / (len(ends) - settling) * 1e3)


def run(kind: str, variant: str, fixed: bool, folder: str = "") -> float:
    """Runs one half. Returns the mean step time in ms."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, __file__, "--half", kind, variant, str(int(fixed)), folder]
        ranks = 2 if kind == "synced_portions" else 1
        processes = [
            subprocess.Popen(
                [*command, str(rank), f"{scratch}/meeting"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, cwd=ROOT, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks)},
            )
            for rank in range(ranks)
        ]  # fmt: skip
        answers = [process.communicate()[0] for process in processes]
    if not answers[0].split():
        sys.exit(f"{kind}, {variant} printed no step time: run the training alone to see why. It may lack a package.")
    return float(answers[0].split()[-1])


def share_of(kind: str, folder: str) -> float:
    """Returns the largest share of the cause `kind` in the reports of a folder; 0 if it is not named."""
    command = [sys.executable, "-m", "tb_bottleneck", "diagnose", folder, "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout)
    findings = [finding for report in told["reports"] for finding in report.get("findings", [])]
    return max((finding["cost_share"] for finding in findings if finding["cause"] == kind), default=0.0)


def main() -> int:
    """Runs the command. Returns the exit status."""
    if sys.argv[1:2] == ["--half"]:
        kind, variant, fixed, folder, rank, meeting = sys.argv[2:]
        half(kind, variant, fixed == "1", folder, int(rank), meeting)
        return 0
    parser = argparse.ArgumentParser(description="Measures changes whose gain cannot be simulated.")
    parser.add_argument("--only", choices=VARIANTS, help="one kind; default: all")
    options = parser.parse_args()
    for kind in [options.only] if options.only else VARIANTS:
        for variant in VARIANTS[kind]:
            times = [[run(kind, variant, fixed) for fixed in (False, True)] for _ in range(ROUNDS[kind])]
            gain = median(slow for slow, _ in times) / median(fixed for _, fixed in times)
            if kind == "compilation":
                print(f"    # {variant}: gain {gain:.2f}", flush=True)
                continue
            with tempfile.TemporaryDirectory() as folder:
                run(kind, variant, False, folder)
                share = share_of(kind, folder)
            if not share or gain <= 1:
                print(f"    # {variant}: share {share:.3f}, gain {gain:.2f}", flush=True)
                continue
            print(f'    {{ training = "{kind}: {variant}", share = {share:.3f}, gain = {gain:.2f} }},', flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
