"""The headline of a comparison, from drawn runs."""

import re
from dataclasses import replace

from comparison.drawn_runs import H200, context, judged, repeated

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.texts.headline import _expected, refusal_headline
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.schema.bottleneck_pb2 import Report, Spread, Window


def headline(tmp_path, a, b):
    return compare_runs(judged(tmp_path, a), judged(tmp_path, b)).headline


def test_slower_and_where(tmp_path):
    said = headline(
        tmp_path, repeated(9, loader="#.....", gpu="..####"), repeated(9, loader="#####.....", gpu="......####")
    )
    assert said.startswith("A is 1.67 times as fast as B: 600 µs per step instead of 1.00 ms.")
    assert "All of that is waiting for data" in said


def test_one_step_that_takes_longer_is_not_called_faster(tmp_path):
    """It read "0.50 times as fast"."""
    short, long = (
        f"op {('##' + '.' * n) * 10}\nlaunch {('.|' + '.' * n) * 10}\ngpu {('..' + '#' * n) * 10}" for n in (2, 6)
    )
    assert re.search(r"and A takes 3.80 ms: A is 2.\d\d times as fast, but", headline(tmp_path, short, long))
    assert re.search(
        r"B takes 3.80 ms per step and A takes .*: B is 2.\d\d times as fast, but", headline(tmp_path, long, short)
    )


def test_one_step_is_said_to_be_one(tmp_path):
    many = "op " + "#" * 20 + "\ngpu " + ".#" * 10 + "\nlaunch " + "|." * 10
    said = headline(tmp_path, many, many)
    assert "each run has only one step" in said


def test_what_gains_in_one_regime_and_loses_in_another(tmp_path):
    a = repeated(9, loader="######....", gpu="......####")
    b = repeated(9, workers="#.......", gpu="....####", save=".###....")
    assert "In the opposite direction" in headline(tmp_path, a, b)


def test_long_steps_that_recur_are_named_beside_the_typical_step(tmp_path):
    """Every third step saves: the ranks of all steps do not show that, but the mean does."""
    saves = [number % 3 == 1 for number in range(9)]
    step = "".join(letter * (16 if saved else 4) for letter, saved in zip("abcdefghi", saves, strict=True))
    save = "".join("....############" if saved else "...." for saved in saves)
    gpu = "".join(".###............" if saved else ".###" for saved in saves)
    said = headline(tmp_path, f"step {step}\nsave {save}\ngpu {gpu}", repeated(9, gpu=".###"))
    assert "no difference beyond the noise" in said
    assert "on average over all steps, B is 2.12 times as fast. All of that is interruptions" in said


def test_the_profiler_s_own_time_is_taken_off_where_that_was_measured(tmp_path):
    """Recorded the two take as long; without the profiler one of them takes half as long."""
    drawing = repeated(9, gpu=".###")
    a, b = (judged(tmp_path, drawing, tb_bottleneck=context(unprofiled_step_ns=ns)) for ns in (300_000, 150_000))
    said = compare_runs(a, b).headline
    assert said.startswith("Without the profiler, B is 2.00 times as fast as A: 150 µs per step instead of 300 µs.")
    assert "The recorded steps disagree" in said


def test_the_whole_runs_come_first_with_their_interval(tmp_path):
    """Pauses lie outside the steps before a trace."""
    drawing = repeated(9, gpu=".###")
    runs = [judged(tmp_path, drawing, tb_bottleneck=context(unprofiled_step_ns=ns)) for ns in (300_000, 150_000)]

    def said(*means_ns):
        logged = [report_of(ns) for ns in means_ns]
        a, b = (replace(run, telemetry_reports=(report,)) for run, report in zip(runs, logged, strict=True))
        return compare_runs(a, b).headline

    whole = (
        "B is 3.00 times as fast as A (2.84 to 3.17): 200 µs per step on average (500 steps) instead of 600 µs (500)."
    )
    assert said(600_000, 200_000).startswith(f"Over the whole runs, pauses included, {whole}")
    assert "A is 2.00 times as fast as B (1.89 to 2.11)" in said(155_000, 310_000)
    assert "no difference beyond the noise: B takes 159 µs" in said(155_000, 159_000)


def report_of(mean_ns):
    window = Window(steps=500, basis="step_clock", step_ns=Spread(mean=mean_ns), mean_error=0.0)
    return Report(evidence_source="telemetry", window=window)


def test_what_few_recorded_steps_do_not_tell_the_run_s_own_step_time_may(tmp_path):
    """Every third step saves, and the ranks of nine steps do not show it; hundreds without the profiler did."""
    saves = [number % 3 == 1 for number in range(9)]
    step = "".join(letter * (16 if saved else 4) for letter, saved in zip("abcdefghi", saves, strict=True))
    save = "".join("....############" if saved else "...." for saved in saves)
    gpu = "".join(".###............" if saved else ".###" for saved in saves)
    times = {ns: [ns + 9 * number for number in range(20)] for ns in (800_000, 400_000)}
    logged = [
        context(unprofiled_step_ns=ns, unprofiled_steps=20, unprofiled_step_times_ns=all_ns)
        for ns, all_ns in times.items()
    ]
    a = judged(tmp_path, f"step {step}\nsave {save}\ngpu {gpu}", tb_bottleneck=logged[0])
    b = judged(tmp_path, repeated(9, gpu=".###"), tb_bottleneck=logged[1])
    comparison = compare_runs(a, b)
    assert comparison.headline.startswith("Without the profiler, B is 2.00 times as fast as A")
    assert "no difference beyond the noise" in comparison.headline, "of the recorded steps"
    assert (comparison.unprofiled.difference, comparison.significant) == ("faster", False)
    assert (comparison.unprofiled.a_steps, comparison.unprofiled.noise < 0.02) == (20, True)


def test_a_difference_without_the_profiler_must_exceed_what_recorded_steps_vary_by(tmp_path):
    """Only medians were logged: 10 % is less than the steps of these recordings vary by."""
    lengths = (4, 8, 5, 9, 4, 8, 5, 9, 6)
    steps = "".join(letter * n for letter, n in zip("abcdefghi", lengths, strict=True))
    gpu = "".join("." + "#" * (n - 1) for n in lengths)
    drawing = f"step {steps}\ngpu {gpu}"
    a, b = (judged(tmp_path, drawing, tb_bottleneck=context(unprofiled_step_ns=ns)) for ns in (550_000, 500_000))
    comparison = compare_runs(a, b)
    assert comparison.unprofiled.difference == "none"
    assert "no difference beyond the noise (their variation was not logged" in comparison.headline


def test_what_no_device_changes_is_said_to_hold_it_back(tmp_path):
    """Eight columns of dispatching, two of the device."""
    drawing = repeated(9, op="########..", launch=".......|..", gpu="........##", sync="........##")
    said = compare_runs(judged(tmp_path, drawing, unit_us=1000), judged(tmp_path, drawing, device=H200, unit_us=1000))
    assert "Expected for this work on an NVIDIA H200:" in said.headline
    assert "Launch overhead, which another device does not change, would be" in said.headline


def test_a_difference_that_a_new_start_also_makes_is_said_to_be_one(tmp_path):
    """Every step of B is 3 % shorter; so are those of the same training on another day."""
    said = [headline(tmp_path, repeated(9, gpu="." + "#" * 33), repeated(9, gpu="." + "#" * n)) for n in (32, 20)]
    assert ["record each a few times" in one for one in said] == [True, False]


def expected(measured, low, high, cause="launch_bound"):
    """A comparison with an expected time of 20 ms after 40 ms, and this measured time in ms."""
    result = pb.Comparison(a_ns=40e6, b_ns=measured * 1e6, speedup=40 / measured, a_steps=9, b_steps=9, per="step")
    result.expected.MergeFrom(pb.Expected(speedup=2.0, b_ns=20e6, low=low, high=high, kernels_speedup=2.0))
    result.expected.by_regime.add(regime="launch", expected_ns=1e6)
    result.expected.shortfall.add(cause=cause, share=0.2, because="dispatching takes 8 ms")
    return _expected(result, "NVIDIA H200")


def test_what_lies_within_the_interval_is_not_called_missing():
    within = expected(28, 1.2, 2.5)
    assert "The measured result, 1.43 times the speed, is within that interval; the main reason" in within
    assert "dispatching takes 8 ms" in within
    assert expected(28, 1.2, 2.5, "unexplained").endswith("is within that interval.")
    assert "Main cause of the shortfall: dispatching takes 8 ms" in expected(28, 1.6, 2.5)


def test_a_refusal_says_why():
    assert refusal_headline(["x.json is incomplete: no steps."]) == "No comparison: x.json is incomplete: no steps."
