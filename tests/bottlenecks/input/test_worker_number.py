"""Another number of workers: predicted if training waits for them, refused if their speed is unknown."""

import json
from math import hypot, log

import numpy as np
import pytest
from comparison.drawn_runs import context, judged, repeated
from helpers.draw import drawn

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.base.deviations import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE
from tb_bottleneck.bottlenecks.input import loader_workers
from tb_bottleneck.bottlenecks.input.fixes import at_workers_pace
from tb_bottleneck.bottlenecks.input.worker_number import worker_number
from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.scenario import CannotPredict

SLOW_WORKERS = repeated(9, workers="######....", gpu="......####", sync="......####")
FAST_WORKERS = repeated(9, workers="#.........", gpu=".########.")


def test_twice_the_workers_make_batches_twice_as_fast(tmp_path):
    """10 ms a step with 2 workers: 20 ms a batch, and with 4 of them 5 ms a step, a tenth more for what they share."""
    run = judged(tmp_path, SLOW_WORKERS, unit_us=1000, tb_bottleneck=context(loader={"workers": 2}))
    result = what_if(run, WhatIfOptions(workers=4))
    assert result.after.step_ns == pytest.approx(5e6 * 1.1, rel=0.03)


def test_if_cores_were_not_recorded_they_are_assumed_and_the_assumption_is_stated(tmp_path):
    contexts = context(workers=2), context(workers=2, cores=64)
    runs = [judged(tmp_path, SLOW_WORKERS, unit_us=1000, tb_bottleneck=one) for one in contexts]
    result = [worker_number(run.recording, 1000).assumptions for run in runs]
    assert "the job has cores for 1000 of them; their number was not recorded" in result[0]
    assert "only 64 of them work at once, because the job has no more cores" in result[1]


def test_workers_slow_a_model_on_the_cpu_more(tmp_path, monkeypatch):
    """There they take the model's own cores: of the demo's pair it took 1.35 times as long."""
    monkeypatch.setattr(loader_workers, "BATCH_HANDOVER_ON_CPU_NS", loader_workers.BATCH_HANDOVER_NS)
    trace = drawn(repeated(9, loader="######.......", op="......#.#.#.#"), 1000, deviceProperties=[])
    path = tmp_path / "cpu.pt.trace.json"
    path.write_text(json.dumps(trace))
    result = what_if(judge_run("cpu", [str(path)]), WhatIfOptions(workers=4))
    of_next_run = QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE
    assert log(result.after.speedup / result.after.low) == pytest.approx(
        hypot(log(1.35 / 1.175), *of_next_run), rel=0.05
    )
    assert any("35 % in the worst case" in line for line in result.assumptions)


def samples(batches: float, making_ms: float) -> dict:
    """What the monitor samples in workers that make so many batches, each in this time."""
    return {"batches": batches, "waiting_ns": 0, "stacks": [["train.py(5): __getitem__", batches * making_ms * 1e6]]}


@pytest.mark.parametrize(
    ("drawing", "facts", "rest_ms", "batch_ms"),
    [
        (SLOW_WORKERS, {"workers": 2}, 4, 20),  # two workers make one batch in 10 ms
        (FAST_WORKERS, {"workers": 2, "loader_stacks": samples(28.73971162763715, 6.0)}, 9, 6),
    ],
)
def test_without_workers_the_training_makes_the_batches_itself(tmp_path, drawing, facts, rest_ms, batch_ms):
    run = judged(tmp_path, drawing, unit_us=1000, tb_bottleneck=context(**facts))
    result = what_if(run, WhatIfOptions(workers=0))
    assert result.after.step_ns == pytest.approx((rest_ms + batch_ms / 1.1) * 1e6, rel=0.05)
    assert result.after.low < result.after.speedup < result.after.high
    assert result.changes == ["the training process made the batches"]


@pytest.mark.parametrize(("batch_ms", "step_ms"), [(0.6, 1.0), (2.5, 2.5)])
def test_fewer_workers_than_now_may_be_too_few(tmp_path, batch_ms, step_ms):
    facts = context(workers=2, cores=2, loader_stacks=samples(30, batch_ms))
    result = what_if(judged(tmp_path, FAST_WORKERS, tb_bottleneck=facts), WhatIfOptions(workers=1))
    assert result.after.step_ns == pytest.approx(step_ms * 1e6, rel=0.03)


def test_sampled_times_of_more_workers_than_cores_include_waiting(tmp_path):
    facts = context(workers=4, cores=2, loader_stacks=samples(30, 0.6))
    with pytest.raises(CannotPredict, match="more workers than cores"):
        worker_number(judged(tmp_path, FAST_WORKERS, tb_bottleneck=facts).recording, 1)


def test_batches_without_a_place_in_the_step_are_made_in_addition(tmp_path):
    """Without any recorded wait for a batch, it is not known what could run beside the making."""
    facts = context(workers=2, loader_stacks=samples(30, 0.6))
    run = judged(tmp_path, FAST_WORKERS, tb_bottleneck=facts)
    change = worker_number(run.recording, 0)
    predictor = ReplayPredictor(run.recording, run.step_bounds)

    def modified(graph):
        bare = graph.with_gap(Activity.LOAD_BATCH, np.zeros_like(graph.items.gap.of(Activity.LOAD_BATCH)))
        return change.apply(bare, Estimate.EXPECTED)

    step_ns = predictor.predict(None, modified).step_ns
    assert step_ns == pytest.approx((0.9 + 0.6 / 1.1) * 1e6, rel=0.05)


def test_without_workers_it_has_to_be_known_how_long_a_batch_takes(tmp_path):
    with pytest.raises(CannotPredict, match="the monitor would sample it"):
        worker_number(judged(tmp_path, FAST_WORKERS).recording, 0)


def test_how_many_there_are_has_to_be_known(tmp_path):
    with pytest.raises(CannotPredict, match="was not recorded"):
        worker_number(judged(tmp_path, SLOW_WORKERS, unit_us=1000).recording, 4)


def test_workers_that_keep_up_do_not_show_how_fast_they_are(tmp_path):
    with pytest.raises(CannotPredict, match="already keep up"):
        worker_number(judged(tmp_path, FAST_WORKERS, tb_bottleneck=context(workers=2)).recording, 4)


def test_without_a_loader_there_is_nothing_to_give_workers_to(tmp_path):
    with pytest.raises(CannotPredict, match="It is unknown which process makes the batches"):
        worker_number(judged(tmp_path, repeated(9, op="##..", gpu="..##")).recording, 4)


def test_more_workers_than_cores_change_nothing(tmp_path):
    """Two workers keep both cores busy; four of them make no batch sooner, and none later."""
    run = judged(tmp_path, SLOW_WORKERS, unit_us=1000, tb_bottleneck=context(workers=2, cores=2))
    result = what_if(run, WhatIfOptions(workers=4))
    assert result.after.speedup == pytest.approx(1, abs=0.02)
    assert any("only 2 of them work at once" in line for line in result.assumptions)


@pytest.mark.parametrize(("batches", "share"), [(20, 0.0), (20, 0.5), (2, 0.0)])
def test_steps_that_took_ready_batches_do_not_show_the_run(tmp_path, batches, share):
    """10 ms a step, which never waits. 2 workers that are always busy need 60 ms for a batch: 30 ms for each step."""
    sampled = samples(batches, 60) | {"waiting_ns": batches * 60e6 * share / (1 - share)}
    facts = context(workers=2, cores=8, loader_stacks=sampled)
    run = judged(tmp_path, FAST_WORKERS, unit_us=1000, tb_bottleneck=facts)
    codes = [issue.code for issue in run.report.health.reasons]
    wait_longer = share == 0 and batches > 10
    assert ("ready_batches" in codes) == wait_longer
    assert run.report.verdict.confidence == ("low" if wait_longer else "high")
    graph = unmodified_graph(RecordedGraph(run.recording))
    steps = len(run.recording.steps)
    assert at_workers_pace(graph).window() / steps == pytest.approx(30e6 if wait_longer else graph.window() / steps)
