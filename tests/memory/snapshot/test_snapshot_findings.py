"""Planted problems are found in a snapshot, with the line and the peak of the fixed program."""

import os
import pickle
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from helpers.planted_allocations import PlantedAllocations, Program
from helpers.simulated_allocator import SimulatedAllocator
from helpers.snapshots import BASE, block, frame, segment

from tb_bottleneck.memory.finding import MemoryFinding
from tb_bottleneck.memory.forecast.forecasts import Forecast
from tb_bottleneck.memory.snapshot.module_calls import _split
from tb_bottleneck.memory.snapshot.snapshot_findings import findings_of_snapshot, forecasts_of_snapshot
from tb_bottleneck.memory.snapshot.snapshot_memory import snapshot_memory
from tb_bottleneck.sources.snapshot.allocator_snapshot import read_snapshot, snapshot_in


def found(raw: dict) -> dict[str, MemoryFinding]:
    memory = snapshot_memory(snapshot_in(BytesIO(pickle.dumps(raw))))
    return {finding.cause: finding for finding in findings_of_snapshot(memory)}


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_training_has_no_finding(seed):
    assert not found(SimulatedAllocator(6, seed).snapshot())


def test_a_leak_is_named_with_its_line():
    finding = found(SimulatedAllocator(7, 0, leak=200_704).snapshot())["growing_memory"]
    values = {value.name: value.value for value in finding.evidence}
    assert values["per_step"] == 200_704
    assert values["at"] == "model.py:31 forward"


@pytest.mark.parametrize(("asked", "cause"), [(1 << 30, "out_of_memory"), (1 << 20, "out_of_memory_fragmented")])
def test_a_failed_request_is_reported(asked, cause):
    raw = SimulatedAllocator(2, 0).snapshot()
    time = raw["device_traces"][0][-1]["time_us"] + 1
    oom = {"action": "oom", "device_free": 2 << 20, "size": asked, "stream": 0, "time_us": time, "frames": []}
    raw["device_traces"][0].append(oom)
    evidence = {value.name: value.value for value in found(raw)[cause].evidence}
    assert evidence["asked"] == asked
    assert evidence["device_free"] == 2 << 20


def test_a_model_that_runs_out_of_memory_while_it_is_loaded_does_not_fit():
    loaded = [frame("torch/nn/modules/module.py", 900, "_apply"), frame("main.py", 5, "<module>")]
    oom = {"action": "oom", "device_free": 2 << 20, "size": 1 << 30, "stream": 0, "time_us": 9, "frames": loaded}
    raw = {"segments": [segment(BASE, [block(1 << 30, loaded)])], "device_traces": [[oom]]}
    assert "weights_do_not_fit" in found(raw)
    assert "out_of_memory" not in found(raw)


WEIGHTS = [512 * size for size in (4096, 4096, 9000, 70, 2048, 300, 12000, 640, 33)]


@pytest.mark.parametrize(
    ("function", "scale", "is_found"),
    [
        ("deepcopy", 1.0, True),
        ("half", 0.5, True),
        ("float", 2.0, True),
        ("load", 0.7, False),
        ("_init_group", 1.0, False),
    ],
)
def test_weights_that_two_places_allocate_are_there_twice(function, scale, is_found):
    """States of an optimizer have the sizes of the weights, too."""
    places = [[frame("main.py", 5, "main")], [frame("copy.py", 9, function), frame("main.py", 8, "main")]]
    blocks = [block(size, places[0]) for size in WEIGHTS]
    blocks += [block(-(-int(size * scale) // 512) * 512, places[1]) for size in WEIGHTS]
    finding = found({"segments": [segment(BASE, blocks)], "device_traces": []}).get("copied_weights")
    assert (finding is not None) == is_found
    if finding is not None:
        assert finding.bytes == pytest.approx(sum(WEIGHTS) * min(scale, 1), rel=1e-3)
        assert {"main.py:5 main", "main.py:8 main"} == {row.value for row in finding.evidence if row.unit == "text"}


@pytest.mark.parametrize(
    ("function", "copies"), [("at::autocast::cached_cast(Tensor)", 9), ("at::_ops::exp::call()", 0)]
)
def test_copies_of_weights_by_autocast_are_told_from_its_other_conversions(function, copies):
    """Autocast converts each weight once, and an input of another size, and one of the size of a weight twice."""
    frames = [frame("??", 0, function), frame("net.py", 7, "forward")]
    weights = segment(BASE, [block(size) for size in WEIGHTS])
    sizes = [size // 2 for size in WEIGHTS] + [512 * 77, WEIGHTS[2] // 2]
    halves = [block(-(-size // 512) * 512, frames) for size in sizes]
    made = segment(BASE + (1 << 30), halves)
    entries = [
        {
            "action": "alloc",
            "addr": placed["address"],
            "size": placed["size"],
            "stream": 0,
            "time_us": at,
            "frames": frames,
        }
        for at, placed in enumerate(made["blocks"])
    ]
    finding = found({"segments": [weights, made], "device_traces": [entries]}).get("weight_casts")
    assert (0 if finding is None else finding.bytes) == sum(each["size"] for each in halves[:copies])


@pytest.mark.parametrize(("unit", "is_found"), [(100 << 20, True), (1 << 20, False)])
def test_split_segments_are_fragmentation_unless_they_are_small(unit, is_found):
    raw = {"segments": [segment(BASE, [block(unit), block(3 * unit, state="inactive")])], "device_traces": []}
    assert [each.bytes for cause, each in found(raw).items() if cause == "fragmentation"] == [3 * unit] * is_found


LATER = {"steps": 4, "recorded_from": (2, "forward")}
FIXES = {
    "attention_kept": (
        "fused_attention",
        Program(hand_written_attention=True, width=256, **LATER),
        {"hand_written_attention": False},
    ),
    "optimizer_temporaries": ("fused_optimizer", Program(layers=12, **LATER), {"fused": True}),
    "optimizer_dominates": ("states_in_8_bits", Program(fused=True, layers=12, **LATER), {"optimizer": "adam8"}),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cause", FIXES)
def test_a_finding_comes_with_the_peak_of_the_fixed_program(cause, seed):
    change, program, fixed = FIXES[cause]
    planted = PlantedAllocations(program, seed).snapshot()
    assert cause in found(planted)
    memory = snapshot_memory(snapshot_in(BytesIO(pickle.dumps(planted))))
    (forecast,) = (it for it in forecasts_of_snapshot(memory) if it.change == change)
    peak = PlantedAllocations(replace(program, **fixed), seed).truth().total()
    assert forecast.low <= peak <= forecast.high
    assert peak < 0.95 * memory.account.peak, "the fix changes something"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", ["double_batch", "half_batch"])
def test_the_peak_with_another_batch_is_predicted(change, seed):
    program = Program(width=256, batch=2, **LATER)
    memory = snapshot_memory(snapshot_in(BytesIO(pickle.dumps(PlantedAllocations(program, seed).snapshot()))))
    (forecast,) = (it for it in forecasts_of_snapshot(memory) if it.change == change)
    other = replace(program, batch=4 if change == "double_batch" else 1)
    peak = PlantedAllocations(other, seed).truth().total()
    assert forecast.low <= peak <= forecast.high
    assert forecast.high < 1.5 * forecast.low


def forecasts(program: Program, seed: int = 0) -> dict[str, Forecast]:
    memory = snapshot_memory(snapshot_in(BytesIO(pickle.dumps(PlantedAllocations(program, seed).snapshot()))))
    return {forecast.change: forecast for forecast in forecasts_of_snapshot(memory)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stacks", ["all", "python"])
def test_the_peak_with_checkpointing_is_predicted(stacks, seed):
    program = Program(blocks=True, width=256, layers=12, batch=2, stacks=stacks, **LATER)
    forecast = forecasts(program, seed)["checkpointing"]
    peak = PlantedAllocations(replace(program, checkpoints=True), seed).truth().total()
    assert forecast.low <= peak <= forecast.high
    assert forecast.values == {"module": "the modules that model.py:33 calls"}
    assert forecast.high < 0.9 * PlantedAllocations(program, seed).truth().total()


def test_a_loop_in_a_forward_is_no_repeated_module():
    """Its lines go back to a line of the loop, and not to the first one that allocates."""
    lines = [20, 21, 22, 21, 22, 23] * 2
    place = np.array([(7, line) for line in lines])
    calls = list(_split(np.arange(12), place, np.zeros(12, np.int64), np.arange(12)))
    assert [rows.tolist() for rows in calls] == [list(range(6)), list(range(6, 12))]


def test_without_a_backward_pass_neither_is_predicted():
    assert not {"checkpointing", "precision_of_32_bits"} & set(forecasts(Program(blocks=True, trains=False)))


@pytest.mark.parametrize("seed", range(3))
def test_the_peak_in_16_bits_is_predicted(seed):
    """Half of the bytes of activations and of temporaries, as with half of the batch."""
    program = Program(width=256, batch=2, **LATER)
    forecast = forecasts(program, seed)["precision_of_32_bits"]
    assert forecast.low <= PlantedAllocations(replace(program, batch=1), seed).truth().total() <= forecast.high


def test_weights_in_16_bits_have_no_forecast_in_16_bits():
    assert "precision_of_32_bits" not in forecasts(Program("master", width=256, batch=2, **LATER))


def test_attention_is_named_with_its_line_and_not_as_one_large_tensor():
    causes = found(PlantedAllocations(Program(hand_written_attention=True, width=256, layers=2, **LATER)).snapshot())
    at = {value.name: value.value for value in causes["attention_kept"].evidence}["at"]
    assert at == "attention.py:6 softmax"


@pytest.mark.parametrize(("optimizer", "kept"), [("none", True), ("adam", False)])
def test_kept_gradients_count_where_the_peak_is_not_in_the_optimizer(optimizer, kept):
    program = Program(optimizer, kept_gradients=True, width=1024, layers=12, **LATER)
    assert ("gradients_kept" in found(PlantedAllocations(program).snapshot())) == kept


SNAPSHOTS = Path(os.environ.get("TB_BOTTLENECK_SNAPSHOTS", "/nonexistent"))
PUBLIC = {
    "lm_small_training": {"parameters": (0.72, 0.8), "gradients": (0.72, 0.8), "optimizer": (1.45, 1.6)},
    "medium_128_training": {"parameters": (1.6, 1.8), "gradients": (1.6, 1.8), "optimizer": (3.3, 3.6)},
    "medium_256_inference": {"before_recording": (1.65, 1.75)},
    "medium_1024_training": {"activations": (0.6 * 25, 25)},
}
"""GB of the parts of public snapshots, by hand."""


@pytest.mark.skipif(not SNAPSHOTS.is_dir(), reason="TB_BOTTLENECK_SNAPSHOTS does not name the folder")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_snapshots_of_gpus_have_the_parts_that_were_counted_by_hand(name):
    memory = snapshot_memory(read_snapshot(str(SNAPSHOTS / f"{name}.pickle.gz")))
    parts = {category.value: size / 1e9 for category, size in memory.account.rows}
    assert all(low <= parts[kind] <= high for kind, (low, high) in PUBLIC[name].items()), parts
    assert "unexplained" not in parts or parts["unexplained"] < 0.01 * sum(parts.values())
