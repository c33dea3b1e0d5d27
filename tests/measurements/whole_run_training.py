"""One small training on the CPU, with a planted cause over the run or without: `whole_run_training.py KIND SECONDS`.

`tests/measurements/whole_runs.py` records it with the monitor. Kinds that begin with "steady" have noise and no cause.
"""

import gc
import math
import random
import sys
import tempfile
import time
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
# The loss comes close to zero, and then the state of the optimizer has denormal numbers: without this, its steps would
# take twice as long at the end of a run.
torch.set_flush_denormal(True)
KIND, SECONDS = sys.argv[1], float(sys.argv[2])
BATCH, WIDTH, SAMPLES = 32, 128, 1600


def burn(seconds: float) -> float:
    """Computes in Python for about this time."""
    end, total = time.perf_counter() + seconds, 0.0
    while time.perf_counter() < end:
        total += math.sqrt(total + 1)
    return total


class Samples(Dataset):
    """Samples whose reading takes longer the more of them were read, or waits at random."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __len__(self) -> int:
        return SAMPLES if KIND != "short_epochs" else 10 * BATCH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if KIND == "drift_loader":
            self.seen.append(index)
            sum(one == index for one in self.seen)
        if KIND == "steady_loader":
            time.sleep(random.expovariate(1 / 2e-4))
        return torch.randn(WIDTH), index % 10


class Net(nn.Module):
    """A small network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_of = nn.CrossEntropyLoss()
workers = {"short_epochs": 1, "steady_workers": 1}.get(KIND, 0)
loader = DataLoader(Samples(), BATCH, shuffle=True, num_workers=workers, persistent_workers=KIND == "steady_workers")
held_out = DataLoader(Samples(), BATCH)
kept: list[torch.Tensor] = []
held_objects: list[list[dict[str, int]]] = []
log: dict[int, list[float]] = defaultdict(list)
folder = tempfile.mkdtemp()
file = open(f"{folder}/log.txt", "w+", encoding="utf-8")  # noqa: SIM115
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
torch._dynamo.config.cache_size_limit = 10_000
if KIND == "compilation":
    many = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(400)))
    compiled = torch.compile(nn.Sequential(many, model), backend="aot_eager")
if KIND in ("logging", "steady_logging"):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)


def after_step(step: int, x: torch.Tensor, out: torch.Tensor, loss: torch.Tensor) -> None:
    """Does what is planted outside of forward, backward and optimizer."""
    if KIND == "drift_list":
        kept.append(out.detach())
        torch.stack([one.mean() for one in kept[-3000:]]).std()
    elif KIND == "drift_metric":
        kept.append(out.detach())
        torch.cat(kept).amax(1).sort()
    elif KIND == "drift_python":
        log[0].append(loss.item())
        max(sorted(log[0] * 20))
    elif KIND == "drift_file":
        file.write(f"{step} {loss.item()}\n" * 50)
        file.flush()
        file.seek(0)
        sum(len(line) for line in file)
    elif KIND == "drift_wait":
        time.sleep(min(step, 4000) * 5e-6)
    elif KIND == "jump":
        burn(0.012 if time.perf_counter() - began > SECONDS / 2 else 0.0)
    elif KIND == "logging" or (KIND == "steady_logging" and step % 200 == 0):
        for name, value in model.named_parameters():
            writer.add_histogram(name, value, step)
    elif KIND == "checkpoint" and step % 10 == 0:
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "more": torch.zeros(4_000_000)},
            f"{folder}/c",
        )
    elif KIND == "steady_checkpoint" and step % 2000 == 1999:
        torch.save(model.state_dict(), f"{folder}/c")
    elif (KIND == "evaluation" and step % 25 == 24) or (KIND == "steady_evaluation" and step % 4000 == 3999):
        with torch.no_grad():
            for held, _ in held_out:
                model(held)
    elif KIND == "python":
        burn(0.01)
    elif KIND == "collection":
        held_objects.append([{"loss": step} for _ in range(50)])
        gc.collect()
    elif KIND == "leak":
        kept.append(torch.zeros(200_000) + loss)
    elif KIND == "steady_python":
        burn(random.uniform(0, 0.002))
    elif KIND == "steady_spikes" and random.random() < 0.002:
        time.sleep(0.05)


def rollout(x: torch.Tensor) -> torch.Tensor:
    """Plays with the network, one sample at a time."""
    with torch.no_grad():
        for _ in range(20):
            x = x + 0.01 * model(x[:1]).mean()
    return x


def reward(x: torch.Tensor) -> float:
    """Judges what was played."""
    with torch.no_grad():
        return sum(float(model(x[:1]).sum()) for _ in range(15))


def batch_of(x: torch.Tensor, step: int) -> torch.Tensor:
    """Returns the batch, in other shapes where that is planted."""
    if KIND == "recompilation":
        return x[: 1 + (step * 7) % BATCH]
    if KIND == "sorted":
        return x.repeat(1 + (step % (SAMPLES // BATCH)) // 4, 1)
    if KIND == "steady_shapes":
        return x[: random.randint(BATCH // 2, BATCH)]
    return x


began = time.perf_counter()
step = 0
while time.perf_counter() - began < SECONDS:
    for x, y in loader:
        x = batch_of(x, step)
        if KIND == "phases":
            x = rollout(x)
            reward(x)
        optimizer.zero_grad()
        if KIND == "drift_hooks":
            model.layers[1].register_forward_hook(lambda *_: None)
        out = (compiled if KIND in ("recompilation", "compilation") else model)(x)
        if KIND == "drift_forward":
            for _ in range(min(step // 150, 40)):
                out = out + 0 * model(x)
        loss = loss_of(out, y[: len(x)].repeat(-(-len(x) // len(y))))
        loss.backward()
        optimizer.step()
        after_step(step, x, out, loss)
        step += 1
        if time.perf_counter() - began >= SECONDS:
            break
