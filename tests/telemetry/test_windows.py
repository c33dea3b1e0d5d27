"""Telemetry in windows: steps by their end, readings as means, counters as increases, without the warm-up."""

import numpy as np
import pytest
from helpers.telemetry_files import context

from tb_bottleneck.schema.signals import CAPTURE_ENDED, CAPTURE_STARTED
from tb_bottleneck.schema.telemetry_pb2 import Packet, Series
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.telemetry.windows import MAX_WINDOWS, WARMUP_STEPS, Windows

S = 1_000_000_000
T = 1_700_000_000 * S


def run(
    steps: str,
    step_s: float = 1.0,
    series: dict[str, list[float]] | None = None,
    since_s: float | None = None,
    steps_per_row: int = 1,
    capture_s: tuple[float, float] | None = None,
    **facts: object,
) -> Windows:
    """Returns windows of a run with one letter per step: `.` ordinary, `p` profiled, `?` with an unknown wait.

    The steps follow the warm-up. Series have one reading per second from T on; waits are a tenth of the step.
    """
    telemetry, made = Telemetry(), Packet()
    letters = "." * WARMUP_STEPS + steps
    for number in range(len(letters)):
        made.steps.number.append(number)
        made.steps.end_unix_ns.append(T + (number - WARMUP_STEPS + 1) * step_s * S)
        made.steps.wall_ns.append(step_s * S / steps_per_row)
        made.steps.steps.append(steps_per_row)
    made.steps.columns.add(name="profiled", values=[float(letter == "p") for letter in letters])
    waits = [float("nan") if letter == "?" else 0.1 * step_s * S / steps_per_row for letter in letters]
    made.steps.columns.add(name="loader_wait", values=waits)
    for name, values in (series or {}).items():
        owner = "host" if name.startswith(("cpu", "quota")) else "GPU-a"
        made.series.add(name=name, device=owner, unix_ns=[T + at * S for at in range(len(values))], values=values)
    for code, at in zip((CAPTURE_STARTED, CAPTURE_ENDED), capture_s or (), strict=False):
        made.notes.add(code=code, unix_ns=T + at * S)
    telemetry.add([context(facts), made])
    return Windows(telemetry, 0 if since_s is None else T + int(since_s * S))


def test_windows_contain_the_steps_that_ended_in_them():
    windows = run("." * 40)
    assert (len(windows), windows.grid.width) == (4, 10 * S)
    assert windows.steps.tolist() == [9, 10, 10, 11], "what ends on an edge is the next window's, if there is one"
    assert windows.total("loader_wait").sum() == pytest.approx(4 * S)


def test_rows_of_several_steps_count_as_that_many():
    single, merged = run("." * 40), run("." * 40, steps_per_row=20)
    assert merged.grid.width == single.grid.width
    assert merged.steps.tolist() == (20 * single.steps).tolist()
    assert merged.total("loader_wait") == pytest.approx(single.total("loader_wait"))


def test_warm_up_and_profiled_steps_are_left_out():
    assert run("....pppp........").steps.sum() == 12


def test_steps_with_an_unknown_wait_count_as_the_others():
    windows = run("?" * 5 + "." * 15)
    assert windows.total("loader_wait").sum() == pytest.approx(2 * S)
    assert np.isnan(run("?" * 20).total("loader_wait")).all()


def test_long_steps_make_wide_windows_and_a_long_run_few():
    assert run("." * 40, step_s=60.0).grid.width == 640 * S
    assert len(run("." * 5000, step_s=30.0)) <= MAX_WINDOWS


def test_readings_are_means_and_missing_ones_are_unknown():
    windows = run("." * 20, series={"power": [100.0] * 10 + [300.0] * 11})
    assert windows.mean("power", of_device=True).round().tolist() == [100.0, 300.0]
    assert np.isnan(windows.mean("temperature", of_device=True)).all()


def test_a_counter_is_what_it_grew_by_and_one_that_went_back_is_unknown():
    grows = run("." * 20, series={"quota_throttled_total": [float(at) for at in range(21)]})
    assert grows.growth("quota_throttled_total").tolist() == pytest.approx([10.0, 10.0])
    back = run("." * 20, series={"quota_throttled_total": [50.0] * 10 + [0.0] * 11})
    assert np.isnan(back.growth("quota_throttled_total")).any()


def test_the_device_is_that_of_the_context_or_the_only_one():
    assert run("." * 20, series={"power": [1.0]}).device == "GPU-a"
    assert run("." * 20, series={"power": [1.0]}, device_uuid="GPU-b").device == "GPU-a"
    assert run("." * 20).device is None
    telemetry = Telemetry()
    series = [Series(name="power", device=one, unix_ns=[T], values=[1.0]) for one in ("GPU-a1", "GPU-b2")]
    telemetry.add([context({"device_uuid": "B2"}), Packet(series=series)])
    assert Windows(telemetry).device == "GPU-b2", "torch leaves out the prefix"


def test_an_empty_run_is_one_window():
    windows = Windows(Telemetry())
    assert (len(windows), windows.steps.tolist()) == (1, [0.0])


def test_window_edges_do_not_move_while_a_run_grows():
    """Once a run exceeded the number of windows, edges moved with each reading, and so did the phases."""
    before, after = (run("." * steps).grid for steps in (20_000, 25_000))
    assert before.count > MAX_WINDOWS // 2
    assert set(before.edges[:-1].tolist()) <= set(after.edges.tolist())


def test_the_windows_since_a_time_contain_later_steps_without_the_warm_up():
    windows = run("." * 40, series={"power": [100.0] * 20 + [300.0] * 21}, since_s=20)
    assert (windows.steps.sum(), windows.grid.begin) == (20, T + 20 * S)
    assert windows.mean("power", of_device=True).round().tolist() == [300.0, 300.0]
    assert run("." * 40, since_s=-100).steps.sum() == 40


@pytest.mark.parametrize(("name", "of_device"), [("gpu_utilisation", True), ("cpu_busy_cores", False)])
def test_readings_of_a_device_that_contain_other_time_than_steps_are_left_out(name, of_device):
    """A reading is a mean over the second before it. A trace is written from 4.5 to 6.2 s, and the device is idle."""
    values = [0.3, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.8, *[1.0] * 13]
    mean = run("." * 20, series={name: values}, capture_s=(4.5, 6.2)).mean(name, of_device)
    if of_device:
        assert mean.tolist() == [1.0, 1.0]
    else:
        assert mean[0] == pytest.approx(np.mean(values[:10]))


def test_a_run_with_no_other_readings_keeps_them():
    assert run("." * 3, series={"gpu_utilisation": [0.3, 0.5, 0.7, 0.9]}, capture_s=(0.1, 3.0)).mean(
        "gpu_utilisation", True
    ) == pytest.approx([0.6])
