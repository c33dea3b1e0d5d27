"""The sentence that a person would say of a comparison."""

from comparison.sides import H200, context, judged, repeated

from tb_bottleneck.comparison.comparing import compare_sides
from tb_bottleneck.comparison.headline import refusal


def headline(tmp_path, a, b):
    return compare_sides(judged(tmp_path, a), judged(tmp_path, b)).headline


def test_slower_and_where(tmp_path):
    said = headline(
        tmp_path, repeated(9, loader="#.....", gpu="..####"), repeated(9, loader="#####.....", gpu="......####")
    )
    assert said.startswith("B takes 1.67 times as long as A: 1.00 ms per step instead of 600 µs.")
    assert "All of that is waiting for data" in said


def test_one_step_is_said_to_be_one(tmp_path):
    many = "op " + "#" * 20 + "\ngpu " + ".#" * 10 + "\nlaunch " + "|." * 10
    said = headline(tmp_path, many, many)
    assert "each side has one step only" in said


def test_what_gains_in_one_regime_and_loses_in_another(tmp_path):
    a = repeated(9, loader="######....", gpu="......####")
    b = repeated(9, workers="#.......", gpu="....####", save=".###....")
    assert "Against it" in headline(tmp_path, a, b)


def test_a_few_long_steps_are_not_claimed_and_yet_located(tmp_path):
    """Every third step saves: the ranks of all steps do not tell that, and the mean does."""
    saves = [number % 3 == 1 for number in range(9)]
    step = "".join(letter * (16 if saved else 4) for letter, saved in zip("abcdefghi", saves, strict=True))
    save = "".join("....############" if saved else "...." for saved in saves)
    gpu = "".join(".###............" if saved else ".###" for saved in saves)
    said = headline(tmp_path, f"step {step}\nsave {save}\ngpu {gpu}", repeated(9, gpu=".###"))
    assert "no difference beyond the noise" in said
    assert "As far as there is one, it lies in interruptions" in said


def test_the_profiler_s_own_time_is_taken_off_where_that_was_measured(tmp_path):
    """Recorded the two take as long; without the profiler one of them takes half as long."""
    drawing = repeated(9, gpu=".###")
    a, b = (judged(tmp_path, drawing, tb_bottleneck=context(unprofiled_step_ns=ns)) for ns in (300_000, 150_000))
    said = compare_sides(a, b).headline
    assert "Without the profiler it is 2.00 times the speed: 150 µs per step instead of 300 µs." in said


def test_what_no_device_changes_is_said_to_hold_it_back(tmp_path):
    """Eight columns of dispatching, two of the device."""
    drawing = repeated(9, op="########..", launch=".......|..", gpu="........##", sync="........##")
    said = compare_sides(judged(tmp_path, drawing, unit_us=1000), judged(tmp_path, drawing, device=H200, unit_us=1000))
    assert "For this work an NVIDIA H200 promises" in said.headline
    assert "Launch overhead, which no device changes, would be" in said.headline


def test_a_refusal_says_why():
    assert refusal(["x.json is incomplete: no steps."]) == "No comparison: x.json is incomplete: no steps."
