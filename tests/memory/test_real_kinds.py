"""Real trainings: the kinds of both readers agree with what torch itself counts, and with each other."""

import pytest

pytest.importorskip("torch")

from memory_trainings.counted import counted_by_readers, counted_by_torch
from memory_trainings.record import Training

WITHIN = 0.05


@pytest.mark.parametrize(
    ("model", "optimizer"),
    [("encoder", "AdamW"), ("resnet", "SGD, momentum"), ("gru", "SGD"), ("fused attention", "AdamW")],
)
def test_the_kinds_are_those_that_torch_counts(model, optimizer):
    training = Training(model, optimizer, 8)
    of_trace, of_snapshot, peak = counted_by_readers(training)
    truth = counted_by_torch(training)
    for told in (of_trace, of_snapshot):
        assert {kind: error for kind, error in told.difference(truth, peak).items() if abs(error) > WITHIN} == {}
