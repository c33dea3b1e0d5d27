"""Facts about the training's own objects: settings and counts, no names of its own."""

from pathlib import Path

import pytest
import torch
from monitor.training import Model, Numbers, Training
from torch.utils.data import DataLoader

from tb_bottleneck.monitor.seen import MOST_LOOKED_AT, Seen, loader_facts, model_facts, optimizer_facts


class SecretProjectOptimizer(torch.optim.AdamW):
    pass


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_a_loader() -> None:
    loader = DataLoader(Numbers(), batch_size=5, num_workers=3, prefetch_factor=4, multiprocessing_context="spawn")
    assert loader_facts(loader) == {
        "workers": 3,
        "pin_memory": False,
        "prefetch_factor": 4,
        "persistent_workers": False,
        "batch_size": 5,
        "worker_start": "spawn",
    }
    seen = Seen()
    assert seen.look("loader", loader)
    assert seen.fetched_ahead == 12


def test_a_loader_whose_batches_somebody_else_makes() -> None:
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


def test_an_optimizer_is_named_after_torchs_class() -> None:
    model = Model().to(torch.bfloat16)
    facts = optimizer_facts(
        SecretProjectOptimizer([*model.parameters(), torch.nn.Parameter(torch.ones(10))], fused=True)
    )
    assert facts == {
        "parameters_by_dtype": {"bfloat16": 4, "float32": 10},
        "optimizer": "AdamW",
        "fused": True,
    }


def test_a_model_tells_its_wrappers_only() -> None:
    model = Model()
    assert model_facts(model) == {"model_wrappers": []}
    assert model_facts(torch.nn.DataParallel(model)) == {"model_wrappers": ["DataParallel"]}
    model.module = torch.nn.Linear(1, 1)
    assert model_facts(model) == {"model_wrappers": []}, "a part of the user's model that is called like a wrapper's"
    model.compile(backend="eager")
    assert model_facts(model) == {"model_wrappers": ["compile"]}


def test_each_is_looked_at_once_and_few_are() -> None:
    seen, training = Seen(), Training()
    assert [seen.look("loader", training.loader) for _ in range(3)] == [True, False, False]
    loaders = [Training().loader for _ in range(20)]
    assert sum(seen.look("loader", one) for one in loaders) == MOST_LOOKED_AT - 1
