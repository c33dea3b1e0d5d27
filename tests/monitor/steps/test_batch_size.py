"""The number of samples in a batch."""

from collections import UserDict, namedtuple
from types import SimpleNamespace

import numpy
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from tb_bottleneck.monitor.steps.device_timing import batch_samples

Pair = namedtuple("Pair", "left right")
BATCH = torch.zeros(7, 3)


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (BATCH, 7),
        ([BATCH, torch.zeros(9)], 7),
        ((BATCH, 3), 7),
        ({"a": BATCH}, 7),
        (UserDict(a=BATCH), 7),
        (Pair(BATCH, 1), 7),
        ([{"a": [BATCH]}], 7),
        (numpy.zeros((7, 2)), 7),
        (torch.tensor(1.0), 1),
        (["a", "b", "c"], 3),
        (SimpleNamespace(num_graphs=5), 5),
        (pack_sequence([torch.zeros(4), torch.zeros(2)]), 2),
        (None, None),
        ([], None),
        ({}, None),
        ("text", None),
        (object(), None),
        ([[[[[[[[BATCH]]]]]]]], None),
    ],
)
def test_samples(batch: object, samples: float | None) -> None:
    assert batch_samples(batch) == samples
