"""A run that was never made: its time with an interval, who owns it then, what to mend first, and honest refusals."""

from pathlib import Path

import pytest
from comparison.sides import V100, context, judged, read, recorded, repeated

from tb_bottleneck.comparison.side import open_side
from tb_bottleneck.comparison.what_if import Asked, what_if
from tb_bottleneck.errors import NotFound

# Six columns of making a batch, then four of the device, for which the step waits.
STARVED = repeated(
    9, loader="######.....", op="......#....", launch="......|....", gpu=".......####", sync=".......####"
)


def asked(tmp_path, drawing=STARVED, header=None, **change):
    return what_if(judged(tmp_path, drawing, unit_us=1000, **(header or {})), Asked(**change))


def test_a_faster_device_leaves_the_loader_as_it_is(tmp_path):
    told = asked(tmp_path, device="NVIDIA H200")
    assert 1.0 < told.after.speedup < 11 / 7
    assert told.after.low <= told.after.speedup <= told.after.high
    assert told.regime == "input"
    assert told.fix_first[0].cause == "loader_in_main_process"
    assert told.fix_first[0].share > 0.7
    assert "Mend that first" in told.headline
    assert sum(bar.b_ns for bar in told.by_regime) == pytest.approx(told.after.step_ns)


def test_workers_take_the_loader_away(tmp_path):
    told = asked(tmp_path, workers=4)
    assert told.after.step_ns == pytest.approx(5.1e6, rel=0.03)
    assert next(bar for bar in told.by_regime if bar.regime == "input").b_ns < 0.2e6
    assert "the loader had 4 workers" in told.changes


def test_one_worker_is_as_fast_as_it_makes_batches(tmp_path):
    told = asked(tmp_path, workers=1)
    assert told.after.step_ns == pytest.approx(6e6 * 1.1, rel=0.03)


def test_workers_beyond_the_cores_do_not_help(tmp_path):
    told = asked(tmp_path, header={"tb_bottleneck": context(cores=1)}, workers=8)
    assert told.after.step_ns == pytest.approx(6e6 * 1.1, rel=0.03)
    assert any("only 1 of them works at once" in line for line in told.assumptions)


def test_the_training_may_get_slower_beside_its_workers(tmp_path):
    told = asked(tmp_path, workers=4)
    assert told.after.low == pytest.approx(told.after.speedup / 1.15, rel=0.02)
    assert any("beside its workers" in line for line in told.assumptions)


def test_of_one_step_the_interval_is_as_wide_as_such_predictions_miss(tmp_path):
    whole = "op " + "##.." * 10 + "\nlaunch " + ".|.." * 10 + "\ngpu " + "..##" * 10
    told = asked(tmp_path, whole, device="NVIDIA H200")
    assert told.after.low <= told.after.speedup / 1.12 * 1.001


def test_a_change_of_nothing_is_called_so(tmp_path):
    told = asked(tmp_path, link="gen4x16")
    assert "a step would take as long as now, 11.0 ms" in told.headline


def test_a_link_in_the_other_device_s_place_is_not_counted_twice(tmp_path):
    """The H200's own link is twice as fast as the A100's; on the A100's link nothing of that is left."""
    copying = repeated(9, op="##......", launch=".||.....", h2d="..##....", gpu="....##..", sync="..####..")
    path = recorded(tmp_path, copying, unit_us=1000)
    text = Path(path).read_text().replace("Pageable", "Pinned")
    Path(path).write_text(text)
    side = open_side("run", [path])
    moved, held = (what_if(side, Asked(device="NVIDIA H200", link=link)) for link in (None, "gen4x16"))
    copies = [next(bar for bar in told.by_regime if bar.regime == "transfer") for told in (moved, held)]
    assert copies[0].b_ns == pytest.approx(copies[0].a_ns - 1e6, rel=0.05), "two columns of copying become one"
    assert copies[1].b_ns == pytest.approx(copies[1].a_ns, rel=0.05)


def test_a_type_is_asked_of_the_device_that_the_run_moves_to(tmp_path):
    """A V100 has no units for bf16, and the H200 has."""
    v100 = {"device": V100}
    assert "no matrix units for bf16" in asked(tmp_path, header=v100, precision="bf16").headline
    assert "no matrix units" not in asked(tmp_path, header=v100, precision="bf16", device="NVIDIA H200").headline


def test_two_changes_at_once(tmp_path):
    told = asked(tmp_path, device="NVIDIA H200", workers=8)
    assert told.after.speedup > asked(tmp_path, device="NVIDIA H200").after.speedup
    assert len(told.changes) == 2


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"batch": 64}, "batch size cannot be told"),
        ({"link": "usb"}, "no link that is known"),
        ({"workers": 0}, "is not simulated"),
        ({"precision": "fp8"}, "no matrix units for fp8"),
    ],
)
def test_what_cannot_be_predicted_is_refused_with_the_reason(tmp_path, change, because):
    told = asked(tmp_path, **change)
    assert not told.HasField("after")
    assert because in told.headline


def test_an_unknown_device_names_near_ones(tmp_path):
    with pytest.raises(NotFound, match="did you mean"):
        asked(tmp_path, device="RTX 40900")


def test_nothing_asked_is_said_to_be_nothing(tmp_path):
    with pytest.raises(NotFound, match="what if what"):
        asked(tmp_path)


def test_an_incomplete_recording_gives_no_prediction(tmp_path):
    told = what_if(read(tmp_path, "step a\nop #"), Asked(device="NVIDIA H200"))
    assert not told.HasField("after")
    assert "incomplete" in told.headline
