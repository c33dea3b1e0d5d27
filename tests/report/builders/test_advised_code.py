"""Advised code fits the device, the cores and the loader of the run: all texts, over a grid of facts."""

import itertools
import re

import pytest
from helpers.simulated_telemetry import FACTS, HEALTHY, SimulatedPhase, simulate

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks import recoverable
from tb_bottleneck.bottlenecks.input import pipeline as input_pipeline
from tb_bottleneck.bottlenecks.input import storage
from tb_bottleneck.bottlenecks.texts import regime_advice, telemetry_advice
from tb_bottleneck.measures.telemetry import host
from tb_bottleneck.report.builders.evidence_source_texts import Context, figures, fitted_code
from tb_bottleneck.report.builders.recording_description import Window
from tb_bottleneck.telemetry.telemetry import Telemetry

ASKED = {
    measure.__name__: measure
    for measure in (
        recoverable.threads_beside_others,
        recoverable.threads_to_use,
        input_pipeline.waiting_workers_to_try,
        input_pipeline.worker_count_to_try,
        input_pipeline.workers_beside_main,
        input_pipeline.workers_now,
        host.intra_op_threads,
        storage.storage_advice,
    )
}
TEXTS = {f"telemetry.{name}": advice.code for name, advice in telemetry_advice().causes.items()} | {
    f"{regime}.{name}": advice.code for regime in Regime for name, advice in regime_advice(regime).causes.items()
}
DEVICES, CORES, WORKERS = ("cuda", "cpu"), (1, 2, 8), (0, 2, 8)
GRID = list(itertools.product(DEVICES, CORES, WORKERS))
ONLY_ON_A_DEVICE = {"transfer", "sync", "allocator", "gpu_unused", "telemetry"}
"""Regimes that a run on the CPU never has. Of telemetry, those of `DEVICE_CAUSES`."""
DEVICE_CAUSES = {"exposed_copies", "model_on_cpu", "memory_pressure", "empty_cache"}


def values_of(device: str, cores: int, workers: int) -> dict[str, str]:
    facts = {**FACTS, "device_kind": device, "cores": cores, "workers": workers, "torch_threads": cores}
    readings = {"cpu_usable_cores": float(cores), "worker_count": float(workers)}
    made = SimulatedPhase(seconds=20.0, load=150.0, device=None if device == "cpu" else 100.0, readings=readings)
    without = () if device == "cuda" else (*HEALTHY, "gpu_utilisation", "device_busy")
    telemetry = Telemetry()
    telemetry.add(simulate([made], facts=facts, without=without))
    recording = TelemetryRecording(telemetry)
    context = Context(device, "", Window(20, "step_clock", 0, 1, None, ()))
    return figures({name: measure(recording) for name, measure in ASKED.items()}) | context.code_values


VALUES = {point: values_of(*point) for point in GRID}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("point", GRID, ids=lambda point: f"{point[0]}, {point[1]} cores, {point[2]} workers")
def test_code_fits_the_device_the_cores_and_the_workers(name, point):
    device, cores, _ = point
    code = fitted_code(TEXTS[name], VALUES[point])
    assert code.strip()
    assert "$" not in code
    assert not re.search(r"cores - \d", code), "the figure is known"
    for asked in re.findall(r"num_workers=(\d+)", code):
        is_now = "restarted_workers" in name  # it keeps the workers that there are
        wait = "slow_storage" in name  # several workers that wait share a core
        most = cores * input_pipeline.WAITING_WORKERS_PER_CORE if wait else cores
        assert is_now or int(asked) <= max(most, 1)
    for asked in re.findall(r"set_num_threads\((\d+)\)", code):
        assert 1 <= int(asked) <= cores
    regime, cause = name.split(".")
    if device == "cpu" and (regime not in ONLY_ON_A_DEVICE or (regime == "telemetry" and cause not in DEVICE_CAUSES)):
        assert "pin_memory=True" not in code
        assert "non_blocking=True" not in code


def test_a_checkpoint_in_a_thread_is_advised_for_checkpoints_only():
    offered = [name for name, code in TEXTS.items() if "Thread(target=torch.save" in code.template]
    assert sorted(offered) == ["interruption.checkpointing", "telemetry.checkpointing"]


def test_more_workers_are_not_advised_where_threads_are_too_many():
    for cause in ("oversubscribed_threads", "contended_cores", "cpu_quota"):
        for point in GRID:
            code = fitted_code(telemetry_advice().causes[cause].code, VALUES[point])
            assert all(int(workers) <= point[2] for workers in re.findall(r"num_workers=(\d+)", code)), (cause, point)


def test_measures_that_only_code_uses_are_no_evidence():
    from tb_bottleneck.report.builders.telemetry_inputs import FOR_CODE

    assert ASKED.keys() >= FOR_CODE
    assert not FOR_CODE & telemetry_advice().lines.keys()
