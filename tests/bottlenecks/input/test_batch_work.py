"""Work on batches that workers do not make shorter: what Python frames show of it, and what its fix gains."""

import json

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

DATA, ONE, SEVERAL = "torch/utils/data/", "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
SAMPLER = (f"{DATA}dataloader.py(714): _next_index", 1, 60)
FETCH = (f"{DATA}_utils/fetch.py(49): fetch", 5, 70)
ITERATOR = (f"{DATA}dataloader.py(492): __iter__", -15, 12)
DROPPED = (f"{DATA}sampler.py(182): __iter__", 82, 8)
TAKEN = ("torch/multiprocessing/reductions.py(537): rebuild_storage_fd", 5, 60)
TENSOR = ("<built-in method tensor of type object at 0x7f1>", 10, 60)
PILLOW = [("<built-in function array>", 10, 60), ("PIL/Image.py(900): load", 11, 58)]
MINE = ("mine.py(5): __getitem__", 10, 60)
STEPS, STEP_MS, FETCH_MS = 6, 200, 80


def recorded(tmp_path, frames, iterator=ONE, items=0, **facts):
    """Writes steps of 200 ms with a fetch of 80 ms from 20 ms on, frames (name, begin and length in ms, from the fetch
    on), `items` calls that read a sample, and operators in the rest. Returns the report."""
    row, events = {"ph": "X", "pid": 1, "tid": 1}, []
    for step in range(STEPS):
        begin = step * STEP_MS * 1000
        at = begin + 20_000
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 200_000})
        name = f"enumerate(DataLoader)#{iterator}.__next__"
        events.append(row | {"cat": "user_annotation", "name": name, "ts": at, "dur": FETCH_MS * 1000})
        loop = [(f"{DATA}dataloader.py(720): __next__", 0, FETCH_MS), *frames]
        for name, start, took in loop:
            ts, dur = at + start * 1000, took * 1000
            events.append(row | {"cat": "python_function", "name": name, "ts": ts, "dur": dur})
        for item in range(items):
            ts = at + 10_000 + item * 50_000 // items
            events.append(row | {"cat": "python_function", "name": "mine.py(5): __getitem__", "ts": ts, "dur": 1})
        before = [] if ITERATOR in frames else range(-20, 0, 5)
        for start in (*before, *range(FETCH_MS + 10, STEP_MS - 20, 5)):
            ts = at + start * 1000
            events.append(row | {"cat": "cpu_op", "name": "aten::linear", "ts": ts, "dur": 4900})
    path = tmp_path / "f.pt.trace.json"
    context = {"cores": 2, **facts}
    path.write_text(json.dumps({"traceEvents": events, "with_stack": 1, "tb_bottleneck": {"context": context}}))
    return diagnose(str(path))


@pytest.mark.parametrize(
    ("given", "cause", "gain"),
    [
        ({"frames": [SAMPLER]}, "slow_sampler", 200 / (200 - 60)),
        ({"frames": [SAMPLER], "iterator": SEVERAL}, "slow_sampler", 200 / (200 - 60)),
        ({"frames": [FETCH, TENSOR]}, "tensors_from_lists", 200 / (200 - 60)),
        ({"frames": [ITERATOR, SAMPLER, DROPPED], "epoch_batches": 90}, "iterator_per_batch", 200 / (200 - 80)),
        ({"frames": [TAKEN], "iterator": SEVERAL}, "tensor_handover", 200 / (200 - 36)),
        ({"frames": [ITERATOR, SAMPLER, DROPPED]}, "iterator_per_batch", 200 / (200 - 80)),
        ({"frames": [FETCH], "items": 4000, "batch_size": 4000}, "samples_one_by_one", 200 / (200 - 80)),
    ],
    ids=["sampler", "sampler of workers", "lists", "iterators", "tensors of workers", "length not known", "samples"],
)
def test_the_work_is_the_cause_and_its_removal_the_gain(tmp_path, given, cause, gain):
    report = recorded(tmp_path, **given)
    found = report.findings[0]
    assert found.cause == cause
    assert found.fix.code
    assert found.speedup.low < gain < found.speedup.high
    assert found.speedup.expected == pytest.approx(gain, rel=0.15)


@pytest.mark.parametrize(
    "given",
    [
        {"frames": [FETCH, MINE]},
        {"frames": [FETCH, TAKEN]},
        {"frames": [FETCH, *PILLOW]},
        {"frames": [(SAMPLER[0], 1, 20), FETCH]},
        {"frames": [ITERATOR, (SAMPLER[0], 1, 20)], "epoch_batches": 1},
        {"frames": [FETCH], "items": 1000, "batch_size": 1000},
        {"frames": [FETCH], "items": 1, "batch_size": 4000},
    ],
    ids=[
        "own work",
        "loading in this process",
        "decoding",
        "a quick sampler",
        "one batch per epoch",
        "slow samples",
        "whole batches",
    ],
)
def test_work_that_workers_share_is_theirs(tmp_path, given):
    assert recorded(tmp_path, **given).findings[0].cause == "loader_in_main_process"
