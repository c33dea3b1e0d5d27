"""Tests the classes of a data set's transforms, and facts about the training's loader and no other."""

import multiprocessing
from pathlib import Path

import pytest
import torch
from monitor.training import Numbers
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

from tb_bottleneck.bottlenecks.input.stages import stages_of, with_classes
from tb_bottleneck.monitor.facts import loader as module
from tb_bottleneck.monitor.facts.loader import MAX_LOADERS, MAX_OBJECTS, LoaderFacts, dataset_classes, loader_facts


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
    assert frame.endswith(f"test_loader.py({line}): __call__")
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


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_a_loader() -> None:
    loader = DataLoader(Numbers(), batch_size=5, num_workers=3, prefetch_factor=4, multiprocessing_context="spawn")
    assert loader_facts(loader) == {
        "workers": 3,
        "pin_memory": False,
        "prefetch_factor": 4,
        "persistent_workers": False,
        "batch_size": 5,
        "epoch_batches": 8,
        "worker_start": "spawn",
    }
    loaders = LoaderFacts()
    loaders.add_iterator(loader, 1)
    assert loaders.fetched_ahead == 12


def test_workers_are_started_as_the_program_says_or_as_the_platform_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was recorded only for loaders with a context of their own."""
    loader = DataLoader(Numbers(), num_workers=1)
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: None)
    assert loader_facts(loader)["worker_start"] == multiprocessing.get_all_start_methods()[0]
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "spawn")
    assert loader_facts(loader)["worker_start"] == "spawn"
    assert "worker_start" not in loader_facts(DataLoader(Numbers()))


def test_a_loader_with_a_batch_sampler() -> None:
    sampler = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(Numbers()), 7, drop_last=False)
    assert loader_facts(DataLoader(Numbers(), batch_sampler=sampler))["batch_size"] == 7
    assert "batch_size" not in loader_facts(DataLoader(Numbers(), batch_size=None))


def test_the_file_system_of_a_data_set_that_says_where_it_lies(tmp_path: Path) -> None:
    data = Numbers()
    data.root = str(tmp_path)
    kind = loader_facts(DataLoader(data))["dataset_filesystem"]
    assert isinstance(kind, str)
    assert "/" not in kind
    data.root = "/nowhere/at/all"
    assert "dataset_filesystem" not in loader_facts(DataLoader(data))
    data.root = 7
    assert "dataset_filesystem" not in loader_facts(DataLoader(data))


def of(size: int) -> DataLoader[object]:
    return DataLoader(Numbers(), batch_size=size)


def test_only_facts_of_the_loader_that_was_trained_on() -> None:
    """An evaluation without `no_grad` replaced the training's loader: its batch size, its workers."""
    loaders, training, evaluation = LoaderFacts(), of(32), of(8)
    loaders.add_iterator(training, 1)
    assert loaders.facts([])["batch_size"] == 32, "the only one that is known"
    loaders.add_iterator(evaluation, 2)
    assert loaders.facts([1])["batch_size"] == 32
    loaders.add_iterator(of(64), 3)
    assert loaders.facts([1, 3])["batch_size"] == 64, "the last one that was trained on"


def test_the_number_of_one_that_was_trained_on_goes_to_an_evaluation() -> None:
    loaders = LoaderFacts()
    loaders.add_iterator(of(32), 1)
    loaders.add_iterator(of(8), 1, replaces_trained=True)
    assert loaders.facts([])["batch_size"] == 32
    loaders.add_iterator(of(64), 2)
    assert loaders.facts([2])["batch_size"] == 64


def test_a_number_that_is_given_again_is_another_loaders() -> None:
    loaders = LoaderFacts()
    sizes = [4, 5, 6, 7, 8, 9]
    for size in sizes:
        loaders.add_iterator(of(size), 1)  # gone at once, so that the next one may lie where it lay
        assert loaders.facts([1])["batch_size"] == size


def test_one_loader_is_looked_at_once_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """`next(iter(loader))` in each step creates an iterator each time."""
    looks = []
    monkeypatch.setattr(module, "loader_facts", lambda loader: looks.append(1) or {"batch_size": 1})
    loaders, loader = LoaderFacts(), of(1)
    for iterator in range(100):
        loaders.add_iterator(loader, iterator)
    assert len(looks) == 1
    assert len(loaders._by_iterator) == MAX_LOADERS
    assert loaders.facts(range(100)) == {"batch_size": 1}
