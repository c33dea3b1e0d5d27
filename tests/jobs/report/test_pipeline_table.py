"""The diagram of a pipeline: the schedule comes out of the recording, and the critical path leads to the slow stage."""

from collections import defaultdict

import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.jobs.replay.sweep import critical_work
from tb_bottleneck.jobs.report.pipeline_table import pipeline_table


def table_of(topology="pipeline", **faults):
    faults = Faults(**{"microbatches": 4, **faults})
    return pipeline_table(context_of(simulated(topology, faults, ranks=4, steps=5)))


def passes(table, rank):
    """Returns "F1 F2 B1 ..." of a rank, with the optimizer as O0."""
    spans = zip(table.rank, table.phase, table.microbatch, strict=True)
    words = [f"{phase[0].upper() if phase != 'both' else 'FB'}{number}" for of, phase, number in spans if of == rank]
    return " ".join(dict.fromkeys(words))  # a pass can have several pieces


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (1, "F1 F2 F3 B1 F4 B2 B3 B4 O0"),
        (2, "F1 F2 B1 F3 B2 F4 B3 B4 O0"),
        (3, "FB1 FB2 FB3 FB4 O0"),
    ],
)
def test_one_forward_one_backward_is_recognised(rank, expected):
    assert passes(table_of(), rank) == expected


def test_an_interleaved_pipeline_has_the_passes_of_its_chunks():
    table = table_of("interleaved")
    assert passes(table, 1) == "F1 F2 F3 F4 F5 F6 F7 F8 B1 B2 B3 B4 B5 B6 B7 B8 O0"
    assert table.microbatch[: passes(table, 0).count("F")], "the first stage receives activations of the last one"


def test_gradients_of_weights_are_of_no_message():
    assert passes(table_of("zero_bubble"), 1) == "F1 F2 F3 B1 F4 B2 O0 B3 B4"


@pytest.mark.parametrize("slow", range(4))
def test_the_critical_path_runs_through_the_slow_stage(slow):
    table = table_of(stage={slow: 2.0}, microbatches=16)
    length: defaultdict[int, float] = defaultdict(float)
    for rank, begin, end, critical in zip(table.rank, table.begin_ns, table.end_ns, table.critical, strict=True):
        length[rank] += (end - begin) * critical
    assert max(length, key=length.__getitem__) == slow
    assert length[slow] > 0.6 * max(table.end_ns)


@pytest.mark.parametrize("topology", ["data", "pipeline", "megatron", "experts"])
def test_the_path_is_as_long_as_the_job_but_for_transfers(topology):
    context = context_of(simulated(topology, ranks=32 if topology == "megatron" else 8, steps=4))
    graph, own, wire = context.complete.graph, context.graph.points.own, context.wires.wire
    path = critical_work(graph, context.replay, own, wire)
    work = own[path].sum() + graph.tail[context.replay.end.argmax()]
    assert 0.8 * context.replay.length <= work <= context.replay.length


def test_a_job_without_a_pipeline_has_no_diagram():
    assert pipeline_table(context_of(simulated("data"))) is None
