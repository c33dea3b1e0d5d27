"""The model of the loader: what limits a step after a change of the number of workers, worked out by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.simulated_telemetry import FACTS
from helpers.telemetry_problems import simulated_phase
from measures.telemetry.test_measures import recording_of

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.input import loader_model as model
from tb_bottleneck.bottlenecks.input.pipeline import loader_wait_time, loading_off_core, worker_count_to_try

BUSY = {"cpu_busy_cores": 2.2, "process_cores": 0.2, "worker_count": 2.0, "worker_cores": 2.0}


STACKS = {"stacks": [["torch/utils/data/_utils/fetch.py(1): fetch;data.py(9): __getitem__;data.py(2): blur", 1e6]]}


def gains(cores: float, readings: dict[str, float] | None = None) -> tuple[float, float, float, str]:
    """Returns expected gain, low, high, and the limit, of two busy workers on a machine with `cores` cores."""
    used = BUSY | {"cpu_usable_cores": cores} | (readings or {})
    phase = replace(simulated_phase("few_workers"), readings=used)
    recording = recording_of(phase, facts=FACTS | {"workers": 2, "cores": cores, "loader_stacks": STACKS})
    values = [
        each(recording) for each in (model.gain_of_workers, model.least_gain_of_workers, model.most_gain_of_workers)
    ]
    limit = model.limit_with_workers(recording)
    assert isinstance(limit, Measure)
    assert all(isinstance(value, Measure) for value in values)
    return (*(value.value for value in values), limit.text)


def test_on_a_large_machine_the_cores_are_no_limit() -> None:
    """The step waits for 40 % of its time: 1 / 0.6, and the workers keep up with it if they are twice as many."""
    expected, low, high, limit = gains(16.0)
    assert low <= expected <= high
    assert expected == pytest.approx(1 / 0.6, rel=0.1)
    assert "cheaper batch" not in limit


def test_cores_limit_the_gain_whatever_the_number_of_workers() -> None:
    """On three cores, two workers of a core each and a fifth of a core for the training gain at most 3 / 2.2."""
    expected, low, high, limit = gains(3.0)
    assert low <= expected <= 3 / 2.2
    assert high <= 3 / 2.2 * (1 + model.RUN_TO_RUN)
    assert limit.endswith("only a cheaper batch gains more (most of it: transform blur, 100 %)")


@pytest.mark.parametrize(("worker_cores", "gain"), [(2.0, 3 / 2.2), (0.2, 3 / 0.4)])
def test_the_cores_allow_what_the_cpu_times_leave(worker_cores: float, gain: float) -> None:
    used = BUSY | {"cpu_usable_cores": 3.0, "worker_cores": worker_cores, "cpu_busy_cores": worker_cores + 0.2}
    phase = replace(simulated_phase("few_workers"), readings=used)
    within = model.gain_within_cores(recording_of(phase, facts=FACTS | {"workers": 2, "cores": 3}))
    assert isinstance(within, Measure)
    assert within.value == pytest.approx(model.MORE_THAN_CORES * gain, rel=0.02)


def test_workers_that_wait_for_storage_need_no_core() -> None:
    computing, waiting = gains(3.0), gains(3.0, {"worker_cores": 0.2, "cpu_busy_cores": 0.4})
    assert waiting[0] > computing[0]


@pytest.mark.parametrize(
    ("on_device", "cpu", "queued", "off"),
    [(False, 40e6, 0.0, 1.0), (False, 70e6, 0.0, 0.5), (False, 40e6, 0.3, 0.5), (True, 40e6, 0.0, 1 / 3)],
)
def test_time_off_a_core_is_a_wait_in_the_loader(on_device, cpu, queued, off) -> None:
    """A step of 100 ms waits 60 ms for its batch. The thread may wait for a device in the rest of the step."""
    per_step = {"wall": 100e6, "loader_wait": 60e6, "thread_cpu": cpu}
    recording: Any = SimpleNamespace(
        per_step=lambda name, unit: Measure(per_step[name], unit),
        windows=SimpleNamespace(growth=lambda _: np.array([queued]), grid=SimpleNamespace(width=1.0)),
        mean=lambda values, unit, _: Measure(float(values.mean()), unit),
        on_device=on_device,
        fact={"torch_threads": 1}.get,
    )
    measured = loading_off_core(recording)
    assert isinstance(measured, Measure)
    assert measured.value == pytest.approx(off)


def test_cores_of_other_processes_may_stay_theirs() -> None:
    alone, beside = gains(8.0), gains(8.0, {"cpu_busy_cores": 8.0})
    assert beside[1] < alone[1]
    assert beside[2] == pytest.approx(alone[2]), "at best the scheduler gives the workers what they need"


def test_without_the_time_of_the_workers_nothing_is_predicted() -> None:
    phase = replace(simulated_phase("few_workers"), readings={"cpu_usable_cores": 4.0})
    recording = recording_of(phase, facts=FACTS | {"workers": 2}, without=("worker_cores",))
    assert isinstance(loader_wait_time(recording), Measure)
    assert isinstance(worker_count_to_try(recording), Measure)
    assert isinstance(model.gain_of_workers(recording), Missing)
