"""Distinguishes recordings of training from inference, where the work of an evaluation is the purpose of the run."""

import re

from tb_bottleneck.trace.trace import Trace

# Autograd's nodes, including compiled ones, and the optimizer's annotation (torch/csrc/autograd/engine.cpp,
# torch/optim/optimizer.py).
_BACKWARD_NAMES = re.compile(r"^autograd::engine::evaluate_function|[A-Za-z]Backward\d*$")
_OPTIMIZER = "Optimizer."
# Layers of torch.nn: operators that programs without a model do not call.
_LAYER_NAMES = re.compile(
    r"^aten::(?:linear|conv\w*|embedding\w*|layer_norm|batch_norm|group_norm|lstm|gru|rnn_\w+|relu_?|gelu|silu_?|addmm|"
    r"max_pool\w*|scaled_dot_product_attention|multi_head_attention_forward)$|^nn\.Module: |^CompiledFunction$"
)


def has_training(trace: Trace) -> bool:
    """Returns True if a backward pass or an optimizer was recorded."""
    return any(map(is_training_name, trace.names))


def has_backward(trace: Trace) -> bool:
    """Returns True if a backward pass was recorded: an optimizer alone shows nothing of the model."""
    return any(_BACKWARD_NAMES.search(name) is not None for name in trace.names)


def has_model(trace: Trace) -> bool:
    """Returns True if layers of a model or a training were recorded: other programs than models call torch, too."""
    return has_training(trace) or any(_LAYER_NAMES.search(name) is not None for name in trace.names)


def is_training_name(name: str) -> bool:
    """Returns True for the name of an operator of a backward pass, or of a step of an optimizer."""
    return name.startswith(_OPTIMIZER) or _BACKWARD_NAMES.search(name) is not None
