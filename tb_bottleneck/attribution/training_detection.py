"""Tells a recording in which something trains from one of inference, whose work a training would call an evaluation."""

import re

from tb_bottleneck.trace.trace import Trace

# Autograd's nodes, compiled ones among them, and the optimizer's annotation (torch/csrc/autograd/engine.cpp,
# torch/optim/optimizer.py).
_TRAINS = re.compile(r"^autograd::engine::evaluate_function|^Optimizer\.|[A-Za-z]Backward\d*$")


def has_training(trace: Trace) -> bool:
    """Whether a backward pass or an optimizer was recorded."""
    return any(_TRAINS.search(name) for name in trace.names)
