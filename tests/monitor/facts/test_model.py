"""Facts about the training's own objects: settings and counts, but no names of user classes."""

import torch
from monitor.training import Model, Training

from tb_bottleneck.monitor.facts.model import MAX_OBJECTS, ModelFacts, model_facts, optimizer_facts


class SecretProjectOptimizer(torch.optim.AdamW):
    pass


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
    seen, training = ModelFacts(), Training()
    assert [seen.add("optimizer", training.optimizer) for _ in range(3)] == [True, False, False]
    optimizers = [Training().optimizer for _ in range(20)]
    assert sum(seen.add("optimizer", one) for one in optimizers) == MAX_OBJECTS - 1
    assert seen.add("model", training.model), "many optimizers leave room for the model"
