"""Trainings with torch.compile: sequences of changing lengths, breaks in the graph, and a chain left uncompiled."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional


class Tower(nn.Module):
    """Perceptron layers; a broken one looks at its values in between."""

    def __init__(self, breaks: bool) -> None:
        super().__init__()
        self.breaks, self.largest = breaks, 0.0
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + functional.gelu(layer(x))
            if self.breaks:
                self.largest = max(self.largest, x.detach().abs().max().item())  # planted: compiled/graph_breaks
        return x


def tower(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a compiled tower of layers on sequences."""
    bad = "" if fixed else problem
    torch.compiler.reset()
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1000
    model = Tower(bad == "graph_breaks")
    backend = "aot_eager" if problem == "changing_shapes" else "inductor"  # which takes many seconds for each shape
    compiled = torch.compile(model, dynamic=False, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        length = 64 + step if bad == "changing_shapes" else 64 + steps
        loss = compiled(torch.randn(length, 128)).square().mean()  # planted: compiled/changing_shapes
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()


def activation(x: Tensor) -> Tensor:
    """Returns a smooth activation, written as a chain of elementwise operators."""
    for _ in range(4):
        x = x * torch.sigmoid(1.702 * x) + 0.1 * torch.tanh(x) - 0.01 * x.square()  # planted: chain/left_eager
    return x


def chain(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a layer with an expensive activation, compiled or not."""
    act = torch.compile(activation) if fixed else activation
    layer = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    inputs = torch.randn(8192, 64)
    for _ in range(steps):
        loss = act(layer(inputs)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step()
