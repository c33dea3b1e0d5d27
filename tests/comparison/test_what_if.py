"""A run that was never made: its time with an interval, who owns it then, what to mend first, and honest refusals."""

import pytest
from comparison.sides import context, judged, read, repeated

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
    assert "mend that first" in told.headline
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
    assert any("1 cores" in line for line in told.assumptions)


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
