"""Problem: an activation consists of a dozen small operators, so the device waits for each one to be launched.

Fix: capture the whole step once as a CUDA graph, and replay it with a single launch.
"""
# mypy: allow-untyped-calls

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

BATCH = 32
WIDTH = 256
LAYERS = 12


class Fragmented(nn.Module):
    """A GELU, written with the operators of its formula."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
        cube = x * x * x
        inner = (x + cube * 0.044715) * 0.7978845608
        return x * (torch.tanh(inner) + 1.0) * 0.5


def make_model() -> nn.Sequential:
    """Returns twelve narrow layers."""
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), Fragmented()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10))


def train(fixed: bool, steps: int, on_step: Callable[[], None], device: torch.device) -> None:
    """Trains for `steps` steps and calls `on_step` after each."""
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(BATCH, WIDTH, device=device), torch.randint(10, (BATCH,), device=device)

    def step() -> None:
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()

    run = graph_of(step).replay if fixed else step
    for _ in range(steps):
        run()
        on_step()


def graph_of(step: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """Captures the step as a graph, after three steps on a side stream, as torch's documentation requires."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph
