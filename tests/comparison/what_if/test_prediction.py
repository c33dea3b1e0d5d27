"""Predictions of runs: the time with an interval, the time by regime, what to fix first, and refusals."""

from math import exp, hypot
from pathlib import Path

import pytest
from comparison.drawn_runs import V100, context, judged, read, recorded, repeated
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tb_bottleneck.attribution.profiler_time import dispatch_time
from tb_bottleneck.base.deviations import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, judge_run
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.trace.kinds import Kind

# Six columns of making a batch, then four of the device, for which the step waits.
STARVED = repeated(
    9, loader="######.....", op="......#....", launch="......|....", gpu=".......####", sync=".......####"
)


def asked(tmp_path, drawing=STARVED, header=None, unit_us=1000, **change):
    return what_if(judged(tmp_path, drawing, unit_us=unit_us, **(header or {})), WhatIfOptions(**change))


def test_a_faster_device_leaves_the_loader_as_it_is(tmp_path):
    result = asked(tmp_path, device="NVIDIA H200")
    assert 1.0 < result.after.speedup < 11 / 7
    assert result.after.low <= result.after.speedup <= result.after.high
    assert result.regime == "input"
    assert result.fix_first[0].cause == "loader_in_main_process"
    assert result.fix_first[0].share > 0.7
    assert "Fix this first" in result.headline
    assert sum(bar.b_ns for bar in result.by_regime) == pytest.approx(result.after.step_ns)


def test_workers_take_the_loader_away(tmp_path):
    result = asked(tmp_path, workers=4)
    assert result.after.step_ns == pytest.approx(5.1e6, rel=0.03)
    assert next(bar for bar in result.by_regime if bar.regime == "input").b_ns < 0.2e6
    assert "the loader had 4 workers" in result.changes


def test_a_change_is_not_advised_before_itself(tmp_path):
    """One worker is too slow: “fix this first” named the missing workers, which the change adds."""
    slower = repeated(
        9, loader="#" * 18 + "." * 5, op="." * 18 + "#....", launch="." * 18 + "|....", gpu="." * 19 + "####"
    )
    result = asked(tmp_path, slower, workers=1)
    assert result.regime == "input"
    assert "loader_in_main_process" not in [fix.cause for fix in result.fix_first]


def test_a_disturbed_step_is_left_out_of_a_prediction(tmp_path):
    """The profiler stops in the last step, which idles for 33 ms: that is no part of the step that is predicted."""
    lines = STARVED.splitlines()
    disturbed = "\n".join(line + ("i" if line.startswith("step") else ".") * 33 for line in lines)
    whole, told = asked(tmp_path, device="NVIDIA H200"), asked(tmp_path, disturbed, device="NVIDIA H200")
    assert told.step_ns == pytest.approx(whole.step_ns, rel=0.01)
    assert told.after.speedup == pytest.approx(whole.after.speedup, rel=0.01)
    assert sum(bar.b_ns for bar in told.by_regime) == pytest.approx(told.after.step_ns)
    assert sum(bar.a_ns for bar in told.by_regime) == pytest.approx(told.step_ns)


def test_one_worker_is_as_fast_as_it_makes_batches(tmp_path):
    result = asked(tmp_path, workers=1)
    assert result.after.step_ns == pytest.approx(6e6 * 1.1, rel=0.03)


def test_workers_beyond_the_cores_do_not_help(tmp_path):
    result = asked(tmp_path, header={"tb_bottleneck": context(cores=1)}, workers=8)
    assert result.after.step_ns == pytest.approx(6e6 * 1.1, rel=0.03)
    assert any("only 1 of them works at once" in line for line in result.assumptions)


def test_training_may_get_slower_next_to_its_workers(tmp_path):
    result = asked(tmp_path, workers=4)
    assert result.after.low < result.after.speedup < result.after.high
    assert any("next to new workers" in line for line in result.assumptions)


def test_of_one_step_the_interval_is_as_wide_as_such_predictions_miss(tmp_path):
    whole = "op " + "##.." * 10 + "\nlaunch " + ".|.." * 10 + "\ngpu " + "..##" * 10
    result = asked(tmp_path, whole, device="NVIDIA H200")
    assert result.after.low <= result.after.speedup / 1.12 * 1.001


def test_the_best_case_is_not_below_what_the_device_computes(tmp_path):
    """The device computes in 40 of 41 columns, and a link changes none of them: no host makes the step shorter."""
    bound = repeated(9, op="##" + "." * 39, launch=".|" + "." * 39, gpu="." + "#" * 40, sync=".." + "#" * 39)
    result = asked(tmp_path, bound, link="gen5x16")
    assert result.after.low < 1 / 1.03
    assert result.after.high <= 41 / 40 + 1e-3


def test_a_loss_is_not_to_be_kept_from_being_wasted(tmp_path):
    result = asked(tmp_path, device="Tesla T4")
    assert result.after.speedup < 0.9
    assert not result.fix_first
    assert "Fix this first" not in result.headline


def test_a_change_of_nothing_is_called_so(tmp_path):
    result = asked(tmp_path, link="gen4x16")
    assert "a step would take as long as now, 11.0 ms" in result.headline


def test_a_link_in_the_other_device_s_place_is_not_counted_twice(tmp_path):
    """The H200's own link is twice as fast as the A100's; on the A100's link nothing of that is left."""
    copying = repeated(9, op="##......", launch=".||.....", h2d="..##....", gpu="....##..", sync="..####..")
    path = recorded(tmp_path, copying, unit_us=1000)
    text = Path(path).read_text().replace("Pageable", "Pinned").replace('"bytes": 1048576', '"bytes": 80000000')
    Path(path).write_text(text)
    run = judge_run("run", [path])
    moved, held = (what_if(run, WhatIfOptions(device="NVIDIA H200", link=link)) for link in (None, "gen4x16"))
    copies = [next(bar for bar in result.by_regime if bar.regime == "transfer") for result in (moved, held)]
    assert copies[0].b_ns == pytest.approx(copies[0].a_ns - 1e6, rel=0.05), "two columns of copying become one"
    assert copies[1].b_ns == pytest.approx(copies[1].a_ns, rel=0.05)


def test_a_type_is_asked_of_the_device_that_the_run_moves_to(tmp_path):
    """A V100 has no units for bf16, and the H200 has."""
    v100 = {"device": V100}
    assert "no matrix units for bf16" in asked(tmp_path, header=v100, precision="bf16").headline
    assert "no matrix units" not in asked(tmp_path, header=v100, precision="bf16", device="NVIDIA H200").headline


def test_two_changes_at_once(tmp_path):
    result = asked(tmp_path, device="NVIDIA H200", workers=8)
    assert result.after.speedup > asked(tmp_path, device="NVIDIA H200").after.speedup
    assert len(result.changes) == 2


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"batch": 64}, "batch size is unknown"),
        ({"workers": 0}, "makes the batches already"),
        ({"precision": "fp8"}, "no matrix units for fp8"),
    ],
)
def test_what_cannot_be_predicted_is_refused_with_the_reason(tmp_path, change, because):
    result = asked(tmp_path, **change)
    assert not result.HasField("after")
    assert because in result.headline


def test_an_unknown_device_names_near_ones(tmp_path):
    with pytest.raises(NotFound, match="did you mean"):
        asked(tmp_path, device="RTX 40900")


def test_an_unknown_link_is_invalid(tmp_path):
    with pytest.raises(NotFound, match="not a known link"):
        asked(tmp_path, link="usb")


def test_nothing_asked_is_said_to_be_nothing(tmp_path):
    with pytest.raises(NotFound, match="no change given"):
        asked(tmp_path)


def test_an_incomplete_recording_gives_no_prediction(tmp_path):
    result = what_if(read(tmp_path, "step a\nop #"), WhatIfOptions(device="NVIDIA H200"))
    assert not result.HasField("after")
    assert "incomplete" in result.headline


def test_unexplained_time_is_not_expected_to_be_shared_by_more_samples(tmp_path):
    """Each second kernel begins three columns after the first one has ended, for an unknown reason."""
    gpu = ".." + 17 * "a" + "..." + 18 * "b"
    late = repeated(9, op="##" + 38 * ".", launch="||" + 38 * ".", gpu=gpu, sync=".." + 38 * "#")
    result = asked(tmp_path, late, {"tb_bottleneck": context(batch_size=8)}, batch=10)
    unexplained = next(bar for bar in result.by_regime if bar.regime == "unexplained")
    assert unexplained.a_ns > 0.05 * result.step_ns
    assert result.after.low < result.step_ns / (result.after.step_ns + unexplained.b_ns / 4)
    assert any("unexplained time does not change" in line for line in result.assumptions)


def test_what_the_replay_cannot_explain_is_not_predicted_from(tmp_path):
    """The report refuses for the same reason. "By the account alone", bf16 gained nothing and added launch overhead."""
    late = judged(tmp_path, repeated(9, op="##........", launch="|.........", gpu="......####"))
    result = what_if(late, WhatIfOptions(precision="bf16"))
    assert late.report.replay.because
    assert not result.HasField("after")
    assert late.report.replay.because in result.notes


def test_profiler_overhead_is_stated_where_it_hides_a_gain(tmp_path):
    """Dispatching takes nine columns, the device's work eight: as recorded a faster device brings nothing, and without
    the profiler the host is not in the way."""
    even = repeated(9, op="#########.", launch=".|........", gpu="..########")
    result = asked(tmp_path, even, device="NVIDIA H200")
    assert result.after.speedup < 1.05
    assert result.after.high > 1.3
    assert any("not known how much the profiler slows the host" in line for line in result.assumptions)
    known = {"tb_bottleneck": context(unprofiled_step_ns=10_000_000)}
    assert not any("profiler" in line for line in asked(tmp_path, even, known, device="NVIDIA H200").assumptions)


def test_a_measured_step_without_the_profiler_is_the_basis(tmp_path, monkeypatch):
    """Without the profiler the step is a fifth shorter, and the host hides less of a faster device's gain."""
    monkeypatch.setitem(dispatch_time.MAX_OVERHEAD_NS, Kind.CALL, 10_000_000)
    even = repeated(9, op="#########.", launch=".|........", gpu="..######..")
    recorded = asked(tmp_path, even, device="NVIDIA H200")
    known = {"tb_bottleneck": context(unprofiled_step_ns=8_000_000)}
    result = asked(tmp_path, even, known, device="NVIDIA H200")
    assert recorded.step_ns == pytest.approx(10_000_000)
    assert result.step_ns == pytest.approx(8_000_000, rel=0.03)
    assert sum(bar.a_ns for bar in result.by_regime) == pytest.approx(result.step_ns, rel=0.01)
    assert any("as the measured steps without it show" in line for line in result.assumptions)


ANYTHING = [
    {"device": "NVIDIA H200"},
    {"device": "Tesla T4", "link": "gen3x1"},
    {"device": "AMD Instinct MI300X", "workers": 2},
    {"workers": 1},
    {"workers": 1000, "batch": 80},
    {"batch": 1},
    {"precision": "bf16", "batch": 16},
    {"link": "gen5x16"},
    {"device": "NVIDIA B200", "precision": "bf16", "batch": 64, "workers": 16, "link": "gen4x8"},
]


@settings(max_examples=40, deadline=None)
@example([".....#####", "##....####", ".........#"], {"workers": 1})  # a replay that is 2.5 % off beat the device
@example(["......####", "#.######..", ".####...#."], {"workers": 1})  # work of left-out steps
@given(st.lists(st.text("#.", min_size=10, max_size=10), min_size=3, max_size=3), st.sampled_from(ANYTHING))
def test_whatever_is_asked_the_interval_holds_the_answer_and_no_host_beats_the_device(tmp_path_factory, rows, change):
    drawing = repeated(9, op="##........", loader=rows[0], gpu=rows[1], h2d=rows[2])
    run = read(tmp_path_factory.mktemp("run"), drawing, unit_us=1000, tb_bottleneck=context(batch_size=8, cores=4))
    result = what_if(run, WhatIfOptions(**change))
    if not result.HasField("after"):
        assert result.headline.startswith("No prediction")
        return
    after = result.after
    assert 0 < after.low <= after.speedup <= after.high
    assert sum(bar.b_ns for bar in result.by_regime) == pytest.approx(after.step_ns)
    assert all(bar.b_ns >= 0 for bar in result.by_regime)
    if change.keys() <= {"workers", "link"} and isinstance(run, ComparedRun):
        facts = RecordedGraph(run.recording)
        assert after.step_ns >= facts.busy / len(run.recording.steps) * (1 - 1e-6)


def test_what_workers_hold_back_they_held_back_before_too(tmp_path):
    """In the worst case, workers that keep up cannot do more: neither could those of the run without its profiler.

    A link that nothing uses costs nothing beyond the differences between two runs.
    """
    fed = repeated(9, workers="#" + "." * 39, op=".#" * 20, launch="|." * 20, gpu=".#" * 20)
    result = asked(tmp_path, fed, unit_us=100, link="gen5x16")
    assert result.after.speedup == 1
    of_next_run = exp(-hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE))
    assert result.after.low == pytest.approx(of_next_run, rel=1e-3), "only the host of the next run is slower"


def test_the_step_time_that_a_prediction_starts_from_is_named(tmp_path):
    """The report leads with the step time without the profiler: "a step" of another length would contradict it."""
    run = judged(tmp_path, STARVED, unit_us=1000)
    assert "a step would take" in what_if(run, WhatIfOptions(workers=4)).headline
    run.report.unprofiled.step_ns = 20e6
    assert "a recorded step would take" in what_if(run, WhatIfOptions(workers=4)).headline
