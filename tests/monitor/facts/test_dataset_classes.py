"""The classes of a data set's transforms, as the profiler does not name them."""

import pytest
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

from tb_bottleneck.measures.input_stages import stages_of, with_classes
from tb_bottleneck.monitor.facts.loader import MAX_OBJECTS, dataset_classes, loader_facts


class Blur:
    def __call__(self, x):
        return x


class Crop(nn.Module):
    def forward(self, x):
        return x


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Images(Dataset):
    def __init__(self, transform=None):
        self.samples = list(range(10_000))
        self.transform = transform
        self.again = self  # a cycle

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(index)

    @property
    def secret(self):
        raise AssertionError("properties are not read")


def test_each_transform_has_its_class():
    found = dataset_classes(Subset(Images(Compose([Blur(), nn.Sequential(Crop())])), [0]))
    assert {"Blur.__call__", "Crop.forward", "Compose.__call__", "Images.__getitem__"} < set(found.values())
    [frame] = [frame for frame, name in found.items() if name == "Blur.__call__"]
    line = Blur.__call__.__code__.co_firstlineno
    assert frame.endswith(f"test_dataset_classes.py({line}): __call__")
    assert not any("nn/modules" in frame for frame in found)


def test_the_stage_of_a_profiled_frame_is_named_by_its_class():
    dataset = Images(Compose([Blur()]))
    named = with_classes(loader_facts(DataLoader(dataset)))
    frames = [frame for frame in dataset_classes(dataset) if "Dataset" not in frame]
    order = {name: frame for frame, name in dataset_classes(dataset).items()}
    stack = [order["Images.__getitem__"], order["Compose.__call__"], order["Blur.__call__"]]
    assert set(stack) <= set(frames)
    [stage] = stages_of([([named(frame) for frame in stack], 1.0)])
    assert (stage.stage, stage.name) == ("transform", "Blur")


def test_with_workers_the_sampler_knows_the_classes():
    assert "loader_classes" not in loader_facts(DataLoader(Images(), num_workers=1))


def test_large_data_sets_are_not_searched():
    dataset = Images()
    dataset.transform = Images()
    chain = dataset
    for _ in range(10):
        chain.transform = Images([Blur() for _ in range(40)])
        chain = chain.transform
    dataset_classes(dataset)
    dataset.transforms = [Compose([]) for _ in range(10 * MAX_OBJECTS)]
    assert "Compose.__call__" not in dataset_classes(dataset).values()


@pytest.mark.parametrize("known", [None, 3, {"data.py(3): f": 5}, {"data.py(3): f": "other"}, {"data.py(3): f": "A.g"}])
def test_damaged_facts_change_nothing(known):
    assert with_classes({"loader_classes": known})("data.py(3): f") == "data.py(3): f"
