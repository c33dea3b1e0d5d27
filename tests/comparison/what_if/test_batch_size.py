"""Another batch: full grids take longer, grids with room take no longer, and updates of parameters stay as they are."""

import json

import numpy as np
import pytest
from comparison.drawn_runs import context, repeated
from helpers.draw import drawn

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.batch_size import change_batch_size
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.scenario import CannotPredict

CONTEXT = {"tb_bottleneck": context(batch_size=8)}


def run(tmp_path, drawing, optimizer=False, **header):
    trace = drawn(drawing, **(CONTEXT | header))
    if optimizer:
        for event in [event for event in trace["traceEvents"] if event["name"] == "aten::linear"]:
            trace["traceEvents"].append(event | {"cat": "user_annotation", "name": "Optimizer.step#SGD.step"})
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(trace))
    return judge_run("run", [str(path)]).recording


def factors(recording, samples):
    return np.unique(np.round(change_batch_size(recording, samples).factors(Estimate.EXPECTED), 3))


FULL = repeated(9, op="##......", launch=".|......", gpu="..####..")


def test_a_grid_that_fills_the_device_takes_as_much_longer(tmp_path):
    assert factors(run(tmp_path, FULL), 16) == pytest.approx([2.0], abs=0.01)


def test_a_grid_of_one_block_has_room_for_more(tmp_path):
    drawing = repeated(9, op="##......", launch=".|......", small="..####..")
    assert factors(run(tmp_path, drawing), 16) == pytest.approx([1.0], abs=0.01)


def test_the_optimizer_works_on_parameters(tmp_path):
    assert factors(run(tmp_path, FULL, optimizer=True), 16) == pytest.approx([1.0])


def test_half_of_the_samples_take_half_of_the_time(tmp_path):
    assert factors(run(tmp_path, FULL), 4) == pytest.approx([0.5], abs=0.01)


def test_how_many_samples_there_are_has_to_be_known(tmp_path):
    with pytest.raises(CannotPredict, match="batch size is unknown"):
        change_batch_size(run(tmp_path, FULL, tb_bottleneck="{}"), 16)


def test_with_unknown_roof_shares_the_best_case_is_better(tmp_path):
    """Ten times the samples: in proportion at worst, and less where a kernel has room as kernels usually have."""
    change = change_batch_size(run(tmp_path, FULL), 80)
    low, expected, high = (change.factors(case).max() for case in (Estimate.LOW, Estimate.EXPECTED, Estimate.HIGH))
    assert low == expected == pytest.approx(10, rel=0.01)
    assert high == pytest.approx(1 - 0.5 / 0.9 + 10 * 0.5 / 0.9, rel=0.01)


def test_staging_a_large_copy_takes_time_in_proportion_too(tmp_path):
    """The host stages 1 MiB of pageable memory for two columns in each step: twice the samples take it four."""
    trace = drawn(repeated(9, op="##...#..", h2d="...##...", gpu="......##"), 1000, **CONTEXT)
    for event in trace["traceEvents"]:
        if event["name"] == "cudaMemcpyAsync":
            event["ts"], event["dur"] = event["ts"] - 2000, 4000
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(trace))
    recording = judge_run("run", [str(path)]).recording
    start = unmodified_graph(RecordedGraph(recording))
    staged = start.items.gap.of(Activity.COPY).sum()
    assert staged > 0
    twice = change_batch_size(recording, 16).apply(start, Estimate.EXPECTED)
    assert twice.items.gap.of(Activity.COPY).sum() == pytest.approx(2 * staged)
