"""Real trainings: the kinds of both readers agree with what torch itself counts, and with each other."""

import pytest

pytest.importorskip("torch")

from memory_trainings.counted import counted_by_readers, counted_by_torch
from memory_trainings.record import Training

from tb_bottleneck.memory.categories import Category
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.trace.trace import load

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


def test_caches_that_grow_in_each_pass_are_kept(tmp_path):
    """As keys and values of inference: a pass allocates larger ones, and then frees the old ones."""
    import torch

    widths, tokens, samples = 4, 64, 8
    caches = [torch.zeros(samples, 1, tokens) for _ in range(widths)]
    with torch.no_grad(), torch.profiler.profile(profile_memory=True, record_shapes=True) as profiler:
        for _ in range(60):
            new = torch.randn(samples, 1, tokens)
            for at in range(widths):
                caches[at] = torch.cat((caches[at], new), 1)
            sum(cache.sum() for cache in caches)
    profiler.export_chrome_trace(str(tmp_path / "decode.pt.trace.json"))
    memory = trace_memory(load(str(tmp_path / "decode.pt.trace.json")))
    kept = memory.account.bytes_of[Category.KEPT]
    size = sum(cache.numel() * cache.element_size() for cache in caches)
    assert size <= kept <= size * (1 + 1.2 / widths), "one of them exists twice while it grows"
