"""Parameters by size, and what blocks from before a history are."""

import numpy as np
import pytest

from tb_bottleneck.memory.categories import INDEX, WORKSPACE_BYTES, Category
from tb_bottleneck.memory.snapshot.snapshot_places import attention_nodes, attention_stacks
from tb_bottleneck.memory.snapshot.weight_sets import (
    MOST_WORKSPACES,
    WeightSets,
    categories_by_size,
    weight_sets,
)
from tb_bottleneck.sources.snapshot.snapshot_columns import Frame

NOTHING = np.empty(0, np.int64)
PARAMETERS = np.array([4096, 8192, 8192, 65536])


@pytest.mark.parametrize("passes", [1, 3])
def test_kept_gradients_are_found_with_several_passes_per_step(passes):
    """Parameters, their gradients and two states of Adam; each pass allocates one block for each gradient."""
    backward = (np.tile(PARAMETERS, passes), PARAMETERS)
    found = weight_sets(np.tile(PARAMETERS, 4), NOTHING, NOTHING, backward)
    assert found.parameters == {4096: 1, 8192: 2, 65536: 1}
    assert found.gradients_kept


@pytest.mark.parametrize(
    ("count", "category"),
    [(2, Category.WORKSPACES), (MOST_WORKSPACES + 1, Category.BEFORE_RECORDING)],
)
def test_many_blocks_of_the_size_of_a_workspace_are_weights(count, category):
    size = np.full(count, WORKSPACE_BYTES[1])
    before = np.full(count, INDEX[Category.BEFORE_RECORDING])
    told = categories_by_size(size, np.ones(count, np.bool_), WeightSets({}, False), before)
    assert set(told.tolist()) == {INDEX[category]}


class Stacks:
    """A snapshot of stacks only: names of operators and of the Python function that calls them."""

    def __init__(self, *calls: tuple[str, str, int]) -> None:
        self.frames = [
            made
            for op, name, line in calls
            for made in (Frame("", 0, f"at::_ops::{op}::call(at::Tensor const&)"), Frame("net.py", line, name))
        ]
        self.stacks = [[2 * number, 2 * number + 1] for number in range(len(calls))]


def test_a_function_with_batched_products_and_a_softmax_is_attention():
    calls = [
        ("bmm", "mix", 7),
        ("_softmax", "mix", 8),
        ("div", "mix", 8),
        ("_softmax", "gate", 8),
        ("bmm", "experts", 9),
    ]
    attends, softmax = attention_stacks(Stacks(*calls))
    assert attends.tolist() == [True, True, True, False, False]
    assert softmax.tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(("op", "line"), [("_softmax", 300), ("_log_softmax", 8)])
def test_a_softmax_elsewhere_or_of_a_loss_makes_no_attention(op, line):
    """Methods of several classes in a file are called `forward`; a script has its loss next to its products."""
    attends, _ = attention_stacks(Stacks(("bmm", "forward", 7), (op, "forward", line)))
    assert attends.tolist() == [False, False]


def test_a_function_that_is_called_attention_needs_no_products():
    attends, softmax = attention_stacks(Stacks(("_softmax", "self_attention", 7), ("_softmax", "loss", 7)))
    assert softmax.tolist() == [True, False]
    assert attends.tolist() == [True, False]


def test_nodes_of_autograd_belong_to_attention_by_their_operators():
    names = ("BmmBackward0", "SoftmaxBackward0", "AddmmBackward0", "GeluBackward0")
    stacks = Stacks()
    stacks.frames = [Frame("", 0, f"torch::autograd::generated::{name}::apply(variable_list&&)") for name in names]
    stacks.stacks = [[at] for at in range(len(names))]
    assert attention_nodes(stacks).tolist() == [True, True, False, False]
