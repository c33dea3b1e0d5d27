"""Compares two runs: the differences sum, the cause is named, the expected time is compared with the measured one."""

import json
import re
from pathlib import Path

import pytest
from comparison.drawn_runs import H200, V100, judged, read, recorded, repeated
from helpers.draw import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

import tb_bottleneck
from tb_bottleneck.comparison.compare import compare_runs, time_unit_of
from tb_bottleneck.comparison.devices.expected_time import device_pair_of, expected_time
from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.measures.batch_size import LOSS_ROWS, SamplesPerStep
from tb_bottleneck.report.json_form import as_dict
from tb_bottleneck.text.comparison import render_comparison

STARVED = repeated(9, loader="######......", gpu="......####..")
FED = repeated(9, workers="#.......", gpu="...####.")


def by_regime(result):
    return {bar.regime: bar for bar in result.by_regime}


def test_a_run_that_waits_for_data_against_one_that_does_not(tmp_path):
    """step   aaaaaaaaaaaa  against  aaaaaaaa: four columns of waiting for data are gone."""
    result = compare_runs(judged(tmp_path, STARVED), judged(tmp_path, FED))
    assert result.comparable
    assert result.significant
    assert result.speedup == pytest.approx(12 / 8, rel=0.01)
    assert sum(bar.delta_ns for bar in result.by_regime) == pytest.approx(result.b_ns - result.a_ns, abs=1e-3)
    assert min(result.by_regime, key=lambda bar: bar.delta_ns).regime == "input"
    assert result.causes.lost[0] == "loader_in_main_process"
    assert "waiting for data" in result.headline
    assert "1.50 times as fast" in result.headline
    assert not result.HasField("expected"), "the devices are the same"
    assert [row.key for row in result.context] == ["loader"]


def test_a_run_against_itself_differs_in_nothing(tmp_path):
    result = compare_runs(judged(tmp_path, FED), judged(tmp_path, FED))
    assert result.speedup == 1
    assert not result.significant
    assert result.difference == "none"
    assert all(bar.delta_ns == 0 for bar in result.by_regime)
    assert "noise" in result.headline
    assert not result.context


def test_the_step_in_which_the_profiler_stops_is_left_out(tmp_path):
    """The last of B's steps idles for three times its length; all others take 8 columns instead of A's 12."""
    stops = "\n".join(
        f"{line}{'i' * 32 if line.startswith('step') else '.' * 32}"
        for line in repeated(9, workers="#.......", gpu="...####.").splitlines()
    )
    told = compare_runs(judged(tmp_path, STARVED), judged(tmp_path, stops))
    assert told.difference == "faster"
    assert (told.a_ns, told.b_ns) == (pytest.approx(1.2e6, rel=0.01), pytest.approx(0.8e6, rel=0.01))
    assert told.speedup == told.a_ns / told.b_ns
    assert sum(bar.delta_ns for bar in told.by_regime) == pytest.approx(told.b_ns - told.a_ns, abs=1e-3)
    assert sum(bar.b_ns for bar in told.by_regime) == pytest.approx(told.b_ns, abs=1e-3)
    assert by_regime(told)["input"].b_ns == pytest.approx(
        by_regime(compare_runs(*[judged(tmp_path, FED)] * 2))["input"].b_ns
    )
    assert any(note.startswith("B: The last step takes 4.00 ms instead of 800 µs") for note in told.notes)


def test_the_typical_step_holds_no_part_of_the_long_ones(tmp_path):
    """Every third step of A saves; the typical step does not, and the mean is stated next to it."""
    saves = [number % 3 == 1 for number in range(9)]
    step = "".join(letter * (16 if saved else 4) for letter, saved in zip("abcdefghi", saves, strict=True))
    save = "".join("....############" if saved else "...." for saved in saves)
    gpu = "".join(".###............" if saved else ".###" for saved in saves)
    drawing = f"step {step}\nsave {save}\ngpu {gpu}"
    told = compare_runs(judged(tmp_path, drawing), judged(tmp_path, repeated(9, gpu=".###")))
    assert told.speedup == 1
    assert all(bar.delta_ns == pytest.approx(0, abs=1) for bar in told.by_regime)
    assert told.mean_speedup == pytest.approx(848 / 400, rel=0.1)
    assert (told.significant, told.by_means, told.difference) == (False, True, "faster")


def test_a_device_that_is_faster_and_a_run_that_is_not(tmp_path):
    """A V100 waits for data as long as it computes; on an H200 the same loader is all there is."""
    v100 = judged(
        tmp_path, repeated(9, loader="####........", gpu="....########", sync=".....#######"), device=V100, unit_us=1000
    )
    h200 = judged(
        tmp_path, repeated(9, loader="########..", gpu="........##", sync=".........#"), device=H200, unit_us=1000
    )
    result = compare_runs(v100, h200)
    expected = result.expected
    assert expected.speedup > result.speedup
    assert expected.kernels_speedup > expected.speedup, "what the host does is not faster there"
    assert sum(row.expected_ns for row in expected.by_regime) == pytest.approx(expected.b_ns)
    missing = (result.b_ns - expected.b_ns) / result.b_ns
    assert sum(part.share for part in expected.shortfall) == pytest.approx(missing)
    assert expected.shortfall[0].cause == "loader_in_main_process"
    assert expected.shortfall[0].regime == "input"
    assert "Expected for this work on an NVIDIA H200" in result.headline
    assert expected.low <= expected.speedup <= expected.high
    # The old name of the field is written for one more version of the contract.
    assert list(result.expected.remainder) == list(result.expected.shortfall)


BUSY = repeated(9, op="##......", launch=".|......", gpu="..######", sync="..######")


def ranked(tmp_path, drawing, rank, of, **header):
    about = {"backend": "nccl", "rank": rank, "world_size": of}
    return recorded(tmp_path, drawing, unit_us=1000, distributedInfo=about, **header)


def test_a_job_of_more_ranks_is_not_called_slower_by_one_rank_s_step(tmp_path):
    """Eight ranks with steps that are a quarter longer than the single rank's do 6.4 times the work."""
    slower = repeated(9, op="##........", launch=".|........", gpu="..########", sync="..########")
    one = judge_run("one", [ranked(tmp_path, BUSY, 0, 1)])
    eight = judge_run("eight", [ranked(tmp_path, slower, 0, 8)])
    said = compare_runs(one, eight).headline
    assert "B's 8 ranks together do 6.40 times the work of A's 1" in said
    assert "times of one rank" not in compare_runs(eight, eight).headline


def test_of_several_ranks_the_expected_time_is_scaled_to_their_mean(tmp_path):
    """Rank 1's steps are half as long again; one rank is replayed, and the result applies to the mean of both."""
    longer = repeated(9, op="##..........", launch=".|..........", gpu="..##########", sync="..##########")
    a = judge_run("a", [ranked(tmp_path, BUSY, 0, 2), ranked(tmp_path, longer, 1, 2)])
    b = judge_run("b", [ranked(tmp_path, BUSY, 0, 2, device=H200)])
    result = compare_runs(a, b)
    alone = expected_time(ReplayPredictor(a.recording), device_pair_of(a.recording, b.recording)).step.step_ns
    whole = sum(a.recording.account.ns.values()) / len(a.recording.steps)
    assert result.expected.speedup == pytest.approx(whole / alone)


def test_a_run_that_was_slowed_by_recording_stacks_is_named(tmp_path):
    result = compare_runs(judged(tmp_path, FED, with_stack=1), judged(tmp_path, FED))
    assert any(note.startswith("A was recorded with stacks and B was not") for note in result.notes)
    assert not compare_runs(judged(tmp_path, FED), judged(tmp_path, FED)).notes[1:]


def test_a_run_on_the_cpu_is_named(tmp_path):
    path = tmp_path / "cpu.pt.trace.json"
    path.write_text(json.dumps(drawn(repeated(9, op="#.#.#.#."), deviceProperties=[])))
    result = compare_runs(judged(tmp_path, FED), judge_run("cpu", [str(path)]))
    assert result.headline.endswith("B ran on the CPU, and A on a device.")
    assert next(row for row in result.context if row.key == "device").b == "CPU"


def test_whether_it_is_the_same_work_may_not_be_known(tmp_path):
    path = Path(recorded(tmp_path, BUSY))
    text = path.read_text().replace("aten::linear", "Torch-Compiled Region: 0/0")
    path.write_text(text)
    result = compare_runs(judged(tmp_path, BUSY), judge_run("compiled", [str(path)]))
    assert "do different work" not in result.headline
    assert not result.HasField("similarity")
    assert any("Cannot determine whether both runs do the same work" in note for note in result.notes)


def test_an_incomplete_recording_is_not_compared(tmp_path):
    result = compare_runs(judged(tmp_path, FED), read(tmp_path, "step a\nop #"))
    assert not result.comparable
    assert result.difference == "unknown"
    assert result.speedup == 0
    assert not result.by_regime
    assert result.headline.startswith("No comparison")
    assert "is incomplete" in result.notes[0]


def test_other_work_is_said_to_be_other_work(tmp_path):
    result = compare_runs(
        judged(tmp_path, repeated(9, op="########", gpu=".#######")),
        judged(tmp_path, repeated(9, op="#.#.#.#.", gpu=".#.#.#.#"), device=H200),
    )
    assert "do different work (they share 25 % of the operators, less than 70 %)" in result.headline
    assert not result.similarity.same_work
    assert not result.HasField("expected"), "a promise for other work is none"
    assert re.search(r"not comparable: A takes \S+ .s per step, B takes \S+ .s\.$", result.headline)
    text = render_comparison(result)
    assert "times as" not in text, "a factor would compare different work"
    assert "Speedup" not in text


def test_the_contract_of_the_json(tmp_path):
    result = as_dict(tb_bottleneck.compare(recorded(tmp_path, STARVED), recorded(tmp_path, FED), ("before", "after")))
    assert (result["a"], result["b"], result["schema"], result["per"]) == ("before", "after", 2, "step")
    assert {"regime", "a_ns", "b_ns", "delta_ns"} <= result["by_regime"][0].keys()
    assert result["similarity"] == {"share": 1.0, "same_work": True, "basis": "operators"}
    assert result["difference"] == "faster"
    assert set(result["causes"]) == {"gained", "lost"}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("#.", min_size=10, max_size=10), min_size=4, max_size=4), st.sampled_from([H200, V100]))
def test_whatever_the_runs_the_parts_sum_to_the_whole(tmp_path_factory, rows, device):
    folder = tmp_path_factory.mktemp("runs")
    runs = [
        read(folder, repeated(9, op="##........", loader=loader, gpu=gpu), device=one)
        for loader, gpu, one in ((rows[0], rows[1], V100), (rows[2], rows[3], device))
    ]
    result = compare_runs(*runs)
    if result.comparable:
        assert sum(bar.delta_ns for bar in result.by_regime) == pytest.approx(result.b_ns - result.a_ns, abs=1e-3)
    if result.HasField("expected"):
        missing = (result.b_ns - result.expected.b_ns) / result.b_ns
        assert sum(part.share for part in result.expected.shortfall) == pytest.approx(missing, abs=1e-9)
        assert result.expected.low <= result.expected.speedup <= result.expected.high


def test_rows_of_a_loss_are_no_samples_of_another_run():
    """Four sequences on one side, and 1,024 tokens on the other: a time per sample would compare both."""
    sequences, tokens = (
        SamplesPerStep(4, "the first dimension of the first embedding's input"),
        SamplesPerStep(1024, LOSS_ROWS),
    )
    assert time_unit_of(sequences, tokens).per == "step"
    assert time_unit_of(tokens, SamplesPerStep(8192, LOSS_ROWS)).per == "sample"
