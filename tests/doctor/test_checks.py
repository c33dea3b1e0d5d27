"""Each check fails when its two sources disagree, and says what was measured and what to change."""

from dataclasses import replace

import pytest
from monitor.samplers.nvml.test_queries import Clock, sampler, values
from monitor.samplers.replay import Replay

from tb_bottleneck.doctor import checks
from tb_bottleneck.doctor.checks import Agreement, Readings, RecordedTrace
from tb_bottleneck.doctor.results import FAILS, LIMITED, UNKNOWN, WORKS
from tb_bottleneck.knowledge.health_texts import health_advice

AGREEMENTS = [one for one in vars(checks).values() if isinstance(one, Agreement)]
TYPICAL = 2e7
"""20 ms, or 20 MB."""


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda one: one.check)
def test_sources_that_disagree_do_not_work(agreement: Agreement) -> None:
    allowed = max(agreement.share * TYPICAL, agreement.slack)
    for error, result in ((0.9, WORKS), (1.1, LIMITED), (2.9, LIMITED), (3.1, FAILS)):
        for sign in (1, -1):
            row = agreement.row([TYPICAL + sign * error * allowed] * 5, [TYPICAL] * 5)
            assert row.result == result, (error, sign)
            assert bool(row.fix) == (result != WORKS)
    assert agreement.text(TYPICAL) in row.measured
    assert agreement.second in row.measured


def test_there_is_an_agreement_for_each_signal() -> None:
    assert {one.check for one in AGREEMENTS} == {
        *("Step times", "Waits for data", "CPU time", "Device time", "Device time (CPU)"),
        *("Copies", "Allocator", "Memory snapshot"),
    }


def test_steps_are_compared_one_by_one() -> None:
    """Equal medians of figures that belong to other steps are no agreement."""
    own = [1e7, 3e7, 5e7, 7e7, 9e7]
    assert checks.STEP_TIMES.row(own[::-1], own).result == FAILS
    assert checks.STEP_TIMES.row(own, own).result == WORKS


def test_a_signal_without_a_figure_does_not_work() -> None:
    assert checks.WAITS.row([], []).result == FAILS
    assert checks.WAITS.row([1e7], []).result == UNKNOWN


# --- Counters of the driver ---


def readings(idle: dict[str, float], load: dict[str, float]) -> dict[str, Readings]:
    """Returns the counters of a GPU that was read twice before the load, which begins at 3, and twice under it."""
    return {name: Readings([1, 2, 4, 5], [idle[name]] * 2 + [load[name]] * 2) for name in idle}


def h200(**changes: float) -> dict[str, float]:
    """Returns the readings of NVML, replayed from a file, in our units."""
    return values(sampler(Replay("h200.json"), Clock())) | changes


IDLE, LOAD = h200(gpu_utilisation=0.0, power=75.0), h200()
TORCH_MEMORY = 1.49e11


def test_counters_that_change_under_load_work() -> None:
    row = checks.counters(readings(IDLE, LOAD), 3, TORCH_MEMORY, {})
    assert (row.result, row.fix) == (WORKS, "")
    assert "gpu utilisation 0 % idle, 97 % under load, power 75 W idle, 652.3 W under load" in row.measured
    assert "memory 150.8 GB, torch 149.0 GB" in row.measured


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("power", 0.0, "0 W"),
        ("temperature", 200.0, "200 celsius"),
        ("gpu_utilisation", 1.7, "170 %"),
        ("sm_clock", 1.0, "1 Hz"),
    ],
)
def test_an_impossible_reading_does_not_work(name: str, value: float, text: str) -> None:
    row = checks.counters(readings(IDLE, {**LOAD, name: value}), 3, TORCH_MEMORY, {})
    assert row.result == FAILS
    assert row.measured == f"{name.replace('_', ' ')} {text} is impossible"


def test_counters_that_never_change_do_not_work() -> None:
    row = checks.counters(readings(LOAD, LOAD), 3, TORCH_MEMORY, {})
    assert row.result == FAILS
    assert "nothing changes under load" in row.measured


def test_counters_of_another_gpu_do_not_work() -> None:
    assert checks.counters(readings(IDLE, LOAD), 3, 2.4e10, {}).measured.startswith("not torch's GPU: ")


def test_no_counters_do_not_work_and_a_lacking_one_limits_them() -> None:
    none = checks.counters({}, 3, TORCH_MEMORY, {"gpu_utilisation": "no driver was found"})
    assert (none.result, none.measured) == (FAILS, "no reading: no driver was found")
    some = readings(IDLE, LOAD)
    del some["temperature"]
    row = checks.counters(some, 3, TORCH_MEMORY, {"temperature": "not in this partition"})
    assert row.result == LIMITED
    assert row.measured.endswith("without temperature: not in this partition")


@pytest.mark.parametrize(
    ("generation", "width", "rate", "result"),
    [(5, 16, 5.5e10, WORKS), (5, 16, 2e10, LIMITED), (1, 16, 5.5e10, FAILS), (5, 16, None, UNKNOWN),
     (None, 16, 1e10, LIMITED), (None, None, None, UNKNOWN)],
)  # fmt: skip
def test_a_link_is_compared_with_the_rate_of_copies(generation, width, rate, result) -> None:
    row = checks.link(generation, width, rate, "not supported")
    assert row.result == result
    assert bool(row.fix) == (result == FAILS or "20.0 GB/s" in row.measured)


# --- The trace ---

TRACE = RecordedTrace(6, 120, 100, 900, 300, launches=80, kernels=80, health="ok", codes=(), on_gpu=True)


def test_a_complete_recording_works() -> None:
    row = checks.capture(TRACE)
    assert (row.result, row.fix) == (WORKS, "")
    assert row.measured.startswith("6 steps, 120 operators, 100 with shapes; 900 Python calls, 300 with lines")


@pytest.mark.parametrize(
    ("part", "word"), [({"with_shapes": 0}, "shapes"), ({"frames": 0}, "stacks"), ({"lines": 0}, "lines")]
)
def test_a_recording_without_a_part_is_limited(part: dict[str, int], word: str) -> None:
    row = checks.capture(replace(TRACE, **part))
    assert row.result == LIMITED
    assert row.measured.endswith(f"without {word}")
    assert row.fix


@pytest.mark.parametrize("part", [{"kernels": 0}, {"steps": 0}, {"operators": 0}, {"health": "unreadable"}])
def test_a_recording_without_work_does_not_work(part) -> None:
    assert checks.capture(replace(TRACE, **part)).result == FAILS


def test_no_recording_does_not_work() -> None:
    row = checks.capture(None, "it failed with RuntimeError")
    assert (row.result, row.measured) == (FAILS, "no trace: it failed with RuntimeError")


def test_lost_kernels_are_a_defect_of_the_profiler() -> None:
    row = checks.profiler_defects(replace(TRACE, kernels=60, codes=("few_steps", "kernels_lost")), "12.4")
    assert (row.result, row.measured) == (FAILS, "80 launches, 60 kernels, kernels lost")
    assert row.fix == health_advice("kernels_lost").fix
    assert checks.profiler_defects(replace(TRACE, codes=("few_steps",)), "12.4").result == WORKS


@pytest.mark.parametrize(
    ("cuda", "result"), [("12.4", WORKS), ("12.6", LIMITED), ("12.8", LIMITED), ("13.0", LIMITED), ("13.1", WORKS)]
)
def test_versions_with_a_known_defect_are_those_of_the_text(cuda: str, result: str) -> None:
    assert checks.profiler_defects(TRACE, cuda).result == result
    first, last = health_advice("kernels_lost").cuda
    assert f"CUDA {first} Update 2 to {last}" in health_advice("kernels_lost").fix
    assert checks.profiler_defects(replace(TRACE, on_gpu=False), cuda).result == WORKS


def test_a_torch_older_than_its_gpu_is_limited() -> None:
    assert checks.profiler_defects(TRACE, "12.4", too_old_for="2.7").fix == "pip install 'torch>=2.7'"
    assert checks.profiler_defects(None, "12.4").result == UNKNOWN


# --- The overhead ---


@pytest.mark.parametrize(
    ("second", "monitored", "result"),
    [(1.001, 1.02, WORKS), (1.001, 1.08, LIMITED), (1.001, 1.3, FAILS), (1.05, 1.03, UNKNOWN), (0.9, 1.0, UNKNOWN)],
)
def test_the_overhead_is_compared_with_the_noise(second: float, monitored: float, result: str) -> None:
    row = checks.overhead([(1e7, second * 1e7, monitored * 1e7)] * 6)
    assert row.result == result
    assert "of steps of 10.0 ms; two blocks" in row.measured


def test_a_machine_that_becomes_slower_is_no_overhead() -> None:
    """Each block is compared with the blocks before and after it."""
    blocks = [1e7 * 1.01**number for number in range(19)]
    rounds = list(zip(blocks[0:18:3], blocks[1:18:3], blocks[2:18:3], strict=True))
    assert checks.overhead(rounds).result == UNKNOWN
    assert checks.overhead([]).result == UNKNOWN
