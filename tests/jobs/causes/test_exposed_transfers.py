"""Exchanges with no work beside them: once per batch in place of once per portion, and small messages."""

import json
from dataclasses import replace

import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.jobs.report.job_report import jobs_of
from tb_bottleneck.jobs.report.wording import with_texts, without_texts
from tb_bottleneck.jobs.summary.extract import summary_of
from tb_bottleneck.jobs.summary.rank_summary import RankSummary
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load
from tests.jobs.report.test_job_report import report_of

SYNCED = Faults(portions=4, wire=2.5)


def length(faults, seed):
    return max(line.end for line in execute(TOPOLOGIES["data"](Shape(ranks=8, steps=5, seed=seed), faults)))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("overlap", [True, False])
def test_one_exchange_in_the_place_of_four_is_simulated(seed, overlap):
    faults = replace(SYNCED, overlap=overlap)
    culprits = culprits_of(context_of(simulated(faults=faults, seed=seed))).culprits
    found = {each.candidate.cause: each for each in culprits}
    gain = found["synced_portions"].gain
    true = length(faults, seed) / length(replace(faults, synced=False), seed)
    assert true > 1.2
    assert gain.expected == pytest.approx(true, rel=0.03)
    assert gain.low <= true <= gain.high


@pytest.mark.parametrize(("device", "more"), [("NVIDIA H100", ""), ("", "more if the fix also frees CPU cores")])
@pytest.mark.parametrize(
    ("faults", "cause"), [(SYNCED, "synced_portions"), (Faults(wire=4, overlap=False), "exposed_collectives")]
)
def test_on_a_cpu_the_exchange_also_takes_cores(device, more, faults, cause):
    summaries = [replace(each, facts=replace(each.facts, device=device)) for each in simulated(faults=faults)]
    (job,) = jobs_of([report_of(each) for each in summaries], summaries)
    assert job.culprits[0].cause == cause
    assert job.verdict.action.endswith(more or ")")
    read = without_texts(job)
    with_texts(read, [], [{}] * len(read.culprits))
    assert read.culprits[0].speedup == job.culprits[0].speedup


def reduced_one_by_one(tmp_path, exchanges: int, elements: int) -> list[RankSummary]:
    """Returns the summaries of two ranks. In each step of 24 ms they compute for 2 ms, then reduce one tensor after the
    other: half of them in 0.8 ms and half in 0.2 ms, each with 0.05 ms of work after it."""
    rows = []
    for begin in (step * 24.0 for step in range(4)):
        rows += [(begin, 24.0, "user_annotation", f"ProfilerStep#{begin:.0f}"), (begin, 2.0, "cpu_op", "aten::mm")]
        for pair in range(exchanges // 2):
            for after, took in ((0.0, 0.8), (0.85, 0.2)):
                start = begin + 2 + 1.1 * pair + after
                rows += [(start, took, "gloo", "gloo:all_reduce"), (start + took, 0.05, "cpu_op", "aten::div_")]
    found = []
    for rank in range(2):
        events = [
            {"ph": "X", "pid": 1, "tid": 2 if kind == "gloo" else 1, "ts": at * 1000, "dur": took * 1000, "name": name}
            | {"cat": "user_annotation" if kind == "gloo" else kind}
            | {"args": {"Input Dims": [[elements]], "Input type": ["float"]} if kind == "gloo" else {}}
            for at, took, kind, name in rows
        ]
        header = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}, "record_shapes": 1}
        path = tmp_path / f"rank{rank}.pt.trace.json"
        path.write_text(json.dumps({**header, "traceEvents": events}))
        trace = load(str(path))
        summary = summary_of(Recording(trace, find_steps(trace)))
        assert summary is not None
        found.append(summary)
    return found


def test_many_small_messages_of_a_cpu_job_are_combined(tmp_path):
    """Gradients that are reduced one by one took half of the time, and "run them beside compute" promised 1.1x."""
    first, *_ = culprits_of(context_of(reduced_one_by_one(tmp_path, 40, 4810))).culprits
    assert first.candidate.cause == "small_messages"
    assert first.candidate.facts["messages"] == pytest.approx(40)
    assert first.candidate.facts["message_bytes"] == 4810 * 4
    assert first.gain.expected == pytest.approx(24 / (4 + 40 * 0.2), rel=0.05)
    assert first.gain.low < 24 / 18
    assert first.gain.high > 0.9 * 24 / (0.8 * 4)


@pytest.mark.parametrize(("exchanges", "elements"), [(10, 4810), (40, 1_000_000)])
def test_few_or_large_messages_are_not_combined(tmp_path, exchanges, elements):
    culprits = culprits_of(context_of(reduced_one_by_one(tmp_path, exchanges, elements))).culprits
    assert "small_messages" not in [each.candidate.cause for each in culprits]
