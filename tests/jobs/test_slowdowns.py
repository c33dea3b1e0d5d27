"""The slowdown by each rank, stage and operation is that of the job with only this one as recorded."""

import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.jobs.slowdowns import slowdowns_of


def slowdowns(topology, faults, **shape):
    context = context_of(simulated(topology, faults, **shape))
    return {(one.of, one.name): one.factor for one in slowdowns_of(context)}, context.recorded_ns


def test_two_slow_ranks_do_not_hide_each_other():
    found, slow = slowdowns("data", Faults(host={1: 0.5, 6: 0.5}))
    _, healthy = slowdowns("data", Faults())
    for rank in ("1", "6"):
        assert found["rank", rank] == pytest.approx(slow / healthy, rel=0.02)
    assert found["operation", "host"] == pytest.approx(slow / healthy, rel=0.02)
    assert {name for of, name in found if of == "rank"} == {"1", "6"}


def test_the_slowest_stage_has_the_largest_slowdown():
    found, slow = slowdowns("pipeline", Faults(stage={3: 1.6}))
    _, even = slowdowns("pipeline", Faults(stage=dict.fromkeys(range(4), 1.15)))
    stages = {name: factor for (of, name), factor in found.items() if of == "stage"}
    assert max(stages, key=lambda name: stages[name]) == "3"
    assert stages["3"] == pytest.approx(slow / even, rel=0.05)


def test_a_slow_link_shows_in_its_operation():
    found, _ = slowdowns("tensor", Faults(link={"t1": 5.0}))
    operations = {name: factor for (of, name), factor in found.items() if of == "operation"}
    assert max(operations, key=lambda name: operations[name]) == "all_reduce"


def test_a_healthy_job_has_no_large_slowdown():
    found, _ = slowdowns("sharded", Faults())
    assert max(found.values(), default=1.0) < 1.04
