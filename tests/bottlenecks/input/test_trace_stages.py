"""Stages from the frames of a loader without workers, and from facts of a loader with workers."""

import json

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.loader_workers import workers_advised
from tb_bottleneck.bottlenecks.input.rule import RULE
from tb_bottleneck.bottlenecks.input.trace_stages import batch_time, costliest_stage, processes_needed, workers_at_work
from tb_bottleneck.bottlenecks.places import cause_places
from tb_bottleneck.diagnosis.parts import Parts, details_of
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.text import sections as text
from tb_bottleneck.text.terminal import Layout
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ROOT = "torch/utils/data/_utils/"


def recorded(tmp_path, iterator, frames=(), context=None, beside=(), length=80):
    """Four steps of 100 ms, each with a fetch of `length` ms that has these frames: name, start and length in ms.

    `beside` has other rows with the same times.
    """
    events, tid = [], {"ph": "X", "pid": 1, "tid": 1}
    for step in range(4):
        at = step * 100_000
        events.append(tid | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 100_000})
        name = f"enumerate(DataLoader)#{iterator}.__next__"
        events.append(tid | {"cat": "user_annotation", "name": name, "ts": at, "dur": length * 1000})
        events.append(tid | {"cat": "cpu_op", "name": "aten::linear", "ts": at + 81_000, "dur": 18_000})
        for frame, start, took in frames:
            row = {"cat": "python_function", "name": frame, "ts": at + start * 1000, "dur": took * 1000}
            events.append(tid | row)
        for row, start, took in beside:
            args = {**row.get("args", {}), "correlation": step + 1}
            events.append({"ph": "X", "pid": 1, **row, "ts": at + start * 1000, "dur": took * 1000, "args": args})
    path = tmp_path / "f.pt.trace.json"
    metadata = {"tb_bottleneck": {"context": context}} if context else {}
    path.write_text(json.dumps({"traceEvents": events, "with_stack": 1, **metadata}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace))


def test_frames_of_the_training_thread(tmp_path):
    frames = [
        ("torch/utils/data/dataloader.py(700): __next__", 0, 80),
        (f"{ROOT}fetch.py(49): fetch", 0, 80),
        ("data.py(3): __getitem__", 0, 60),
        ("<built-in function open>", 1, 0),
        ("<built-in function open>", 3, 0),
        ("data.py(9): blur", 10, 45),
        (f"{ROOT}collate.py(3): default_collate", 60, 20),
        ("<built-in function open>", 90, 0),
    ]
    recording = recorded(tmp_path, "_SingleProcessDataLoaderIter", frames)
    assert costliest_stage(recording).text == "transform blur, 56 %"
    assert batch_time(recording).value == pytest.approx(80e6)
    assert processes_needed(recording).value == 4  # 80 ms / 20 ms
    found = details_of(recording, Parts()).input
    assert found.storage.opens_per_batch == 2, "the third one is not of the loader"
    assert "2 files opened per batch" in Layout(100).text(text.input_pipeline_lines(found))
    stages = {stage.stage: stage.share for stage in found.stages}
    assert stages == pytest.approx({"transform": 45 / 80, "collate": 20 / 80, "dataset": 15 / 80}, abs=0.01)


def test_fetches_that_take_no_time_have_no_stages(tmp_path):
    """Only a damaged file has such fetches; there is no moment at which a stage runs."""
    recording = recorded(tmp_path, "_SingleProcessDataLoaderIter", length=0)
    assert isinstance(costliest_stage(recording), Missing)


def test_a_step_with_several_batches_needs_as_many_more_workers(tmp_path):
    """Gradient accumulation: two fetches of 40 ms in each step of 100 ms; 20 ms remain."""
    fetch = {"cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "tid": 1}
    frames = [("torch/utils/data/dataloader.py(700): __next__", 0, 80), (f"{ROOT}fetch.py(49): fetch", 0, 80)]
    recording = recorded(tmp_path, "_SingleProcessDataLoaderIter", frames, beside=[(fetch, 40, 40)], length=40)
    assert batch_time(recording).value == pytest.approx(40e6, rel=0.01)
    assert processes_needed(recording).value == 4


@pytest.mark.parametrize("iterator", ["_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"])
def test_pinning_and_copies_beside_the_loader(tmp_path, iterator):
    """A pin thread that copies for 8 ms, within other frames of it, and a copy of 6 ms to the device."""
    frames = [("torch/utils/data/dataloader.py(700): __next__", 0, 80), (f"{ROOT}fetch.py(49): fetch", 0, 80)]
    stack = f"{ROOT}fetch.py(49): _MapDatasetFetcher.fetch;data.py(3): D.__getitem__"
    fact = {"stacks": [[stack, 320_000_000]], "batches": 4, "waiting_ns": 0}
    pinning, device = {"cat": "python_function", "tid": 2}, {"pid": 0, "tid": 7}
    about = {"device": 0, "stream": 7}
    beside = [
        (pinning | {"name": f"{ROOT}pin_memory.py(18): _pin_memory_loop"}, 0, 99),
        (pinning | {"name": f"{ROOT}pin_memory.py(60): pin_memory"}, 10, 8),
        (pinning | {"name": f"{ROOT}pin_memory.py(60): pin_memory"}, 11, 2),
        ({"cat": "cuda_runtime", "name": "cudaMemcpyAsync", "tid": 1}, 82, 1),
        (device | {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "args": about}, 84, 6),
    ]
    recording = recorded(tmp_path, iterator, frames, {"loader_stacks": fact}, beside)
    found = details_of(recording, Parts()).input
    stages = {stage.stage: stage for stage in found.stages}
    assert (stages["pin"].ns_per_batch, stages["copy"].ns_per_batch) == pytest.approx((8e6, 6e6))
    assert found.batch_ns == pytest.approx(80e6, rel=0.01), "both run beside the processes that make batches"
    shown = Layout(100).text(text.input_pipeline_lines(found))
    assert "copying to pinned memory" in shown
    assert "copying to the device" in shown


def test_samples_of_the_workers(tmp_path):
    stack = f"{ROOT}fetch.py(49): _MapDatasetFetcher.fetch;data.py(3): D.__getitem__;data.py(9): Blur.__call__"
    fact = {"stacks": [[stack, 1_600_000_000]], "batches": 10, "waiting_ns": 0, "read_bytes": 1000, "reads": 20}
    context = {"loader_stacks": fact, "workers": 2, "cores": 6, "dataset_storage": "ssd"}
    recording = recorded(tmp_path, "_MultiProcessingDataLoaderIter", context=context)
    found = details_of(recording, Parts()).input
    assert (found.batch_ns, found.workers, found.workers_needed) == (160e6, 2, 8)
    assert (found.stages[0].title, found.stages[0].place.line) == ("transform Blur", 9)
    assert (found.storage.kind, found.storage.reads_per_batch) == ("ssd", 2)
    assert workers_advised(recording).text == "6", "not more than the cores"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"dataset_storage": "rotational", "dataset_filesystem": "ext4"}, "Data: on a rotating disk (ext4)."),
        ({"dataset_filesystem": "xfs"}, "Data: on xfs."),
        ({"dataset_storage": "a disk", "dataset_filesystem": "<b>"}, None),
        ({}, None),
    ],
)
def test_the_storage_is_told_without_the_stages(tmp_path, facts, said):
    """It was recorded, and shown only where the stages or slow storage were found."""
    recording = recorded(tmp_path, "_MultiProcessingDataLoaderIter", context={"workers": 2} | facts)
    found = details_of(recording, Parts()).input
    assert (found is None) == (said is None)
    if said is not None:
        assert [str(line) for line in text.input_pipeline_lines(found)] == ["Making a batch", said]


STACKS = {
    f"{ROOT}fetch.py(49): _MapDatasetFetcher.fetch;data.py(3): D.__getitem__;data.py(9): Blur.__call__": 1_200_000_000,
    f"{ROOT}fetch.py(49): _MapDatasetFetcher.fetch;data.py(3): D.__getitem__;PIL/Image.py(9): load": 300_000_000,
    f"{ROOT}fetch.py(49): _MapDatasetFetcher.fetch;{ROOT}collate.py(3): default_collate": 100_000_000,
}


@pytest.mark.parametrize(
    ("waiting_ns", "batches", "cause"),
    [(0, 10, "too_few_workers"), (1_600_000_000, 10, "few_fetches"), (0, 3, "few_fetches")],
)
def test_workers_that_never_wait_are_too_slow_whatever_the_number_of_fetches(tmp_path, waiting_ns, batches, cause):
    """Four fetches: the samples decide, if they are of enough batches and the workers were busy."""
    fact = {"stacks": [list(entry) for entry in STACKS.items()], "batches": batches, "waiting_ns": waiting_ns}
    iterator, context = "_MultiProcessingDataLoaderIter", {"loader_stacks": fact, "workers": 2, "cores": 6}
    recording = recorded(tmp_path, iterator, context=context)
    [found] = RULE.judge(Measures(recording)).causes
    assert found.name == cause
    assert (workers_at_work in found.evidence) == (cause == "too_few_workers")


def test_the_lines_of_a_cause_in_the_workers_are_those_that_make_batches(tmp_path):
    frames = [("train.py(50): main", 0, 99)]
    fact = {"stacks": [list(entry) for entry in STACKS.items()], "batches": 10, "waiting_ns": 0}
    iterator, context = "_MultiProcessingDataLoaderIter", {"loader_stacks": fact, "workers": 2, "cores": 6}
    recording = recorded(tmp_path, iterator, frames, context)
    places = cause_places(recording, Regime.INPUT, "too_few_workers")
    assert [(place.file, place.line, place.function) for place in places] == [
        ("data.py", 9, "Blur.__call__"),
        ("data.py", 3, "D.__getitem__"),
    ]
    assert [place.share for place in places] == pytest.approx([12 / 16, 3 / 16])
    [start] = cause_places(recording, Regime.INPUT, "first_batch")
    assert start.function == "main", "the training waits for the workers to start"


def test_without_frames_and_samples(tmp_path):
    recording = recorded(tmp_path, "_SingleProcessDataLoaderIter")
    assert isinstance(costliest_stage(recording), Missing)
    assert details_of(recording, Parts()).input is None
