"""The stage of a stack, and untrusted facts."""

import pytest

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.input.stages import MAX_STAGES, sampled_work, stage_text, stages_of

FETCH = "torch/utils/data/_utils/fetch.py(49): _MapDatasetFetcher.fetch"
STREAM = "torch/utils/data/_utils/fetch.py(20): _IterableDatasetFetcher.fetch"
FOLDER = "torchvision/datasets/folder.py(240): DatasetFolder.__getitem__"
COMPOSE = "torchvision/transforms/transforms.py(94): Compose.__call__"
MODULE_CALL = "torch/nn/modules/module.py(1760): Module._call_impl"
MINE = "data.py(3): Images.__getitem__"


@pytest.mark.parametrize(
    ("stack", "stage", "name"),
    [
        ([FOLDER, "torchvision/datasets/folder.py(250): pil_loader", "PIL/Image.py(3200): open"], "read", ""),
        ([FOLDER, "PIL/Image.py(900): Image.convert", "PIL/ImageFile.py(190): ImageFile.load"], "decode", ""),
        ([MINE, "PIL/Image.py(700): Image.__array_interface__", "PIL/Image.py(9): Image.tobytes"], "decode", ""),
        ([MINE, "<waits for storage>"], "read", ""),
        ([FOLDER, COMPOSE, MODULE_CALL, "torchvision/x.py(350): Resize.forward", "PIL/Image.py(9): Image.resize"],
         "transform", "Resize"),
        ([FOLDER, COMPOSE, "torchvision/x.py(130): Crop.__call__", "torchvision/f.py(1): f"], "transform", "Crop"),
        ([MINE, "data.py(9): augment", "numpy/x.py(3): f"], "transform", "augment"),
        ([MINE, "data.py(12): __call__", "data.py(5): __call__"], "transform", "data.py(5): __call__"),
        ([MINE, "nn.Module: Compose_0", "nn.Module: Blur_0", "torch/x.py(1): f"], "transform", "Blur"),
        ([MINE, "torch/functional.py(1): stft"], "dataset", "Images"),
        (["torch/utils/data/_utils/collate.py(3): default_collate"], "collate", ""),
        (["data.py(30): Pad.__call__"], "collate", "Pad"),
        ([STREAM, "data.py(3): samples"], "transform", "samples"),
        (["torch/utils/data/_utils/pin_memory.py(60): pin_memory"], "pin", ""),
        ([], "other", ""),
    ],
)  # fmt: skip
def test_the_stage_of_a_stack(stack, stage, name):
    (found,) = stages_of([([FETCH, *stack], 1.0)])
    assert (found.stage, found.name) == (stage, name)


def test_stages_are_added_up_and_limited():
    stacks = [([FETCH, MINE, f"data.py({line}): f{line}"], float(line)) for line in range(1, 20)]
    found = stages_of([*stacks, stacks[-1]])
    assert len(found) == MAX_STAGES + 1
    assert (found[0].name, found[0].ns, found[0].place) == ("f19", 38.0, "data.py(19): f19")
    assert found[-1].stage == "other"
    assert sum(stage.ns for stage in found) == sum(range(1, 20)) + 19


def test_sampled_work():
    stacks = [[f"{FETCH};{MINE};data.py(9): augment", 9e6], [f"{FETCH};{MINE}", 1e6]]
    fact = {"stacks": stacks, "other_ns": 0, "waiting_ns": 1e7, "batches": 5, "read_bytes": 500}
    work = sampled_work({"loader_stacks": fact})
    assert work.batch_ns == 2e6
    assert work.waiting_share == 0.5
    assert [stage_text(stage) for stage in work.stages] == ["transform augment", "the data set's own code Images"]


@pytest.mark.parametrize(
    "fact", [None, [], {"stacks": 3}, {"stacks": [[1, 2], ["a", "b"], ["a", -1], ["a"], None]}, {"stacks": []}]
)
def test_damaged_facts(fact):
    assert isinstance(sampled_work({"loader_stacks": fact}), Missing)
