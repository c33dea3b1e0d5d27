"""Records the memory of a training on the CPU."""

import tempfile
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, schedule

from memory_trainings.models import CLASSES, MODELS, TOKENS, VOCABULARY
from tb_bottleneck.trace.trace import Trace, load

OPTIMIZERS = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "SGD, momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
}
STEPS = 4
PROBLEMS = ("", "kept graph", "kept output", "zeroed gradients", "evaluation with gradients", "large logits")
LOGITS = 2_000_000
"""Elements of the planted logits, of all samples together."""


class Training:
    """One training. `problem` is one of PROBLEMS; `dtype` is torch.bfloat16 for autocast."""

    def __init__(self, model: str, optimizer: str, samples: int, *, problem: str = "", dtype=None, checkpointed=False):
        torch.manual_seed(0)
        self.kind, make = MODELS[model]
        self.model, self.samples, self.problem, self.dtype = make(), samples, problem, dtype
        if checkpointed:
            self.model.checkpointed = True
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.kept: list[torch.Tensor] = []
        self.total: torch.Tensor | float = 0.0

    def loss(self, inputs, targets):
        """Returns the loss of a batch."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype is not None):
            scores = self.model(inputs).flatten(0, -2)
            if self.problem == "large logits":
                scores = scores @ torch.ones(scores.shape[1], LOGITS // len(scores))
            return F.cross_entropy(scores, targets.flatten())

    def step(self) -> None:
        """Trains on a batch."""
        inputs, targets = self.batch()
        if self.problem == "evaluation with gradients":
            self.loss(inputs, targets)
            return
        self.optimizer.zero_grad(set_to_none=self.problem != "zeroed gradients")
        loss = self.loss(inputs, targets)
        loss.backward()
        if self.problem == "kept graph":
            self.total = self.total + self.loss(inputs, targets)
        if self.problem == "kept output":
            self.kept.append(self.model(inputs).detach())
        self.optimizer.step()

    def batch(self):
        """Returns inputs and targets."""
        if self.kind == "vision":
            return torch.randn(self.samples, 3, 32, 32), torch.randint(0, CLASSES, (self.samples,))
        if self.kind == "features":
            return torch.randn(self.samples, 256), torch.arange(self.samples)
        shape = (self.samples, TOKENS)
        return torch.randint(0, VOCABULARY, shape), torch.randint(0, VOCABULARY, shape)


def recorded(training: Training, steps: int = STEPS) -> Trace:
    """Returns the trace of some steps after two that are not recorded."""
    torch.set_num_threads(1)
    for _ in range(2):
        training.step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.pt.trace.json"
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=0, warmup=1, active=steps, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
            profile_memory=True,
            record_shapes=True,
            with_stack=True,
        ) as profiler:
            for _ in range(1 + steps):
                training.step()
                profiler.step()
        return load(str(path))
