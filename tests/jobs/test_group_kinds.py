"""The kind of a process group is that of its description, or follows from what it carries."""

from dataclasses import replace

import pytest
from helpers.simulated_jobs import context_of, simulated

from tb_bottleneck.knowledge.catalogue import kind_of_description
from tb_bottleneck.trace.header import ProcessGroup


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("default_pg", None),
        ("undefined", None),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"),
        ("DATA_PARALLEL_GROUP", "data"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "data"),
        ("CONTEXT_PARALLEL_GROUP", "context"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "expert"),
        ("EXPERT_DATA_PARALLEL_GROUP", "data"),
        ("EXPERT_TENSOR_PARALLEL_GROUP", "tensor"),
        ("EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP", "unknown"),
        ("MODEL_PARALLEL_GROUP", "unknown"),
        ("EMBEDDING_GROUP", "pipeline"),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", "unknown"),
        ("mesh_tp", "tensor"),
        ("mesh_dp_shard", "sharded"),
        ("mesh_fsdp", "sharded"),
        ("mesh_dp_replicate", "data"),
        ("mesh_pp", "pipeline"),
        ("mesh_ep", "expert"),
        ("mesh_etp", "tensor"),
        ("mesh_dp_shard_mod_ep", "sharded"),
        ("mesh_loss", "data"),
        ("mesh_cp", "context"),
        ("mesh_dp_shard_cp", "sharded"),
    ],
)
def test_descriptions(description, kind):
    found = kind_of_description(description)
    if description == "mesh_dp_shard_cp":
        assert found in ("sharded", "context")
        return
    assert found == kind


def without_descriptions(summaries):
    return [replace(s, groups=tuple(replace(group, description="") for group in s.groups)) for s in summaries]


@pytest.mark.parametrize(
    ("topology", "kinds"),
    [
        ("data", {"0": "data"}),
        ("sharded", {"1": "sharded"}),
        ("tensor", {"t0": "tensor", "t1": "tensor", "d0": "data", "d3": "data"}),
        ("experts", {"e0": "expert", "0": "data"}),
        ("pipeline", {"p0": "pipeline", "p1": "pipeline", "d0": "data"}),
    ],
)
def test_groups_without_a_description_are_told_by_what_they_carry(topology, kinds):
    context = context_of(without_descriptions(simulated(topology)))
    found = {group.name: kind for group, kind in zip(context.job.groups, context.grid.kinds, strict=True)}
    assert found | kinds == found


def test_ranks_that_exchange_messages_in_each_step_are_the_stages_of_a_pipeline():
    grid = context_of(simulated("pipeline")).grid
    assert (grid.stage.tolist(), grid.stages) == ([0, 0, 1, 1, 2, 2, 3, 3], 4)
    assert grid.peers(3).tolist() == [2, 3]
    assert context_of(simulated("data")).grid.stages == 1


@pytest.mark.parametrize("name", ["", "0"], ids=["Gloo", "the default group"])
def test_messages_in_a_group_of_all_ranks_are_those_of_several_pipelines(name):
    everybody = ProcessGroup(name, "default_pg" if name else "", tuple(range(8)), 8)
    summaries = [
        replace(s, groups=tuple(everybody if group.name.startswith("p") else group for group in s.groups))
        for s in simulated("pipeline")
    ]
    grid = context_of(summaries).grid
    assert (grid.stage.tolist(), grid.stages) == ([0, 0, 1, 1, 2, 2, 3, 3], 4)
