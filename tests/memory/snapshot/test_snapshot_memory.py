"""The account of a simulated allocator's snapshot has the bytes that the simulation put there."""

import pickle
from collections import Counter
from io import BytesIO

import numpy as np
import pytest
from helpers.simulated_allocator import SimulatedAllocator
from helpers.snapshots import BASE, block, frame, random_snapshot, segment

from tb_bottleneck.memory.memory_course import course_of
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory, snapshot_memory
from tb_bottleneck.memory.snapshot.snapshot_places import short_paths
from tb_bottleneck.sources.snapshot.allocator_snapshot import snapshot_in


def memory_of(raw: dict) -> SnapshotMemory:
    return snapshot_memory(snapshot_in(BytesIO(pickle.dumps(raw))))


def told(memory: SnapshotMemory) -> dict[str, int]:
    return {category.value: size for category, size in memory.account.rows}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("recorded_from", [None, 0, 2])
@pytest.mark.parametrize("keep_frames", [True, False])
def test_the_categories_at_the_peak_are_those_of_the_simulation(seed, recorded_from, keep_frames):
    simulated = SimulatedAllocator(4, seed, recorded_from=recorded_from)
    if recorded_from:
        simulated.truth = Counter()
        simulated.step(first=False)
    truth = {category: size for category, size in simulated.truth.items() if size}
    memory = memory_of(simulated.snapshot(keep_frames))
    account = told(memory)
    if recorded_from is not None and not keep_frames:  # nothing says what they are
        unknown = truth.pop("workspaces") + truth.pop("communication") + truth.pop("inputs")
        truth["before_recording"] = unknown
    assert account == truth
    assert memory.account.peak == memory.account.reserved == sum(truth.values())


def test_free_blocks_in_used_segments_are_fragmentation_and_others_are_cache():
    raw = {
        "segments": [
            segment(BASE, [block(1024), block(3072, state="inactive")]),
            segment(BASE + (1 << 30), [block(2048, state="inactive")]),
            segment(BASE + (2 << 30), [block(4096), block(512, state="inactive")], pool=(0, 7)),
        ],
        "device_traces": [],
    }
    memory = memory_of(raw)
    assert told(memory) == {"graphs": 4608, "fragmentation": 3072, "cache": 2048, "before_recording": 1024}
    assert memory.account.peak == sum(it["total_size"] for it in raw["segments"])


@pytest.mark.parametrize("seed", range(6))
def test_the_parts_sum_to_the_segments_for_any_snapshot(seed):
    raw = random_snapshot(900, seed=seed, devices=1)
    raw["segments"] = [segment(it["address"], it["blocks"]) for it in raw["segments"]]
    account = memory_of(raw).account
    assert account.peak == account.reserved
    assert account.peak >= sum(it["total_size"] for it in raw["segments"])
    assert all(size >= 0 for size in account.bytes_of.values())


def test_an_empty_snapshot_has_an_empty_account():
    memory = memory_of({"segments": [], "device_traces": []})
    assert memory.account.peak == 0
    assert memory.all_sites() == []


def test_lines_of_the_program_are_named():
    sites = memory_of(SimulatedAllocator(3, 0).snapshot()).all_sites()
    lines = {(site.category.value, site.place.file, site.place.line) for site in sites}
    assert ("activations", "model.py", 31) in lines
    assert ("optimizer", "train.py", 44) in lines
    assert [site.bytes for site in sites] == sorted((site.bytes for site in sites), reverse=True)


def test_the_device_with_the_most_memory_is_chosen():
    raw = {"segments": [segment(BASE, [block(512)]), segment(BASE + 4096, [block(4096)], device=1)]}
    assert memory_of(raw).device == 1


def test_the_curve_of_a_snapshot_has_the_simulated_bytes_at_its_peak():
    simulated = SimulatedAllocator(4, 0)
    memory = memory_of(simulated.snapshot())
    course = course_of(memory, memory.edges)
    at_peak = {kind.value: int(values[course.curve.peak]) for kind, values in course.curve.bytes_of.items()}
    assert {kind: size for kind, size in at_peak.items() if size} == +simulated.truth
    assert max(course.history.peaks) == sum(simulated.truth.values())
    assert len(course.history.peaks) == 5  # the calls before the first update, and those after each of the four
    assert {it.site.category.value for it in course.lifetimes} >= {"activations", "optimizer", "workspaces"}


def test_a_leak_rises_through_the_history_of_a_snapshot():
    memory = memory_of(SimulatedAllocator(6, 0, leak=1 << 22).snapshot())
    ends = course_of(memory, memory.edges).history.ends.tolist()
    assert np.diff(ends[1:-1]).tolist() == [1 << 22] * 4


def test_without_annotations_the_allocations_of_the_optimizer_separate_the_steps():
    raw = SimulatedAllocator(5, 0).snapshot() | {"external_annotations": []}
    memory = memory_of(raw)
    assert len(memory.edges) == 7  # five updates, the first and the last call


STACK = [
    ("", 0, "at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)"),
    ("", 0, "at::_ops::addmm::redispatch(c10::DispatchKeySet)"),
    ("/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125, "forward"),
    ("/home/me/model.py", 31, "forward"),
    ("/home/me/train.py", 44, "main"),
]


def test_a_stack_gives_operator_line_and_callers():
    memory = memory_of({"segments": [segment(BASE, [block(512, [frame(*it) for it in STACK])])], "device_traces": []})
    place = memory.all_sites()[0].place
    assert (place.operator, place.file, place.line) == ("aten::addmm", "model.py", 31)
    assert place.path == ("train.py:44 main",)


def test_a_stack_of_autograd_gives_its_node():
    node = frame("", 0, "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)")
    memory = memory_of({"segments": [segment(BASE, [block(512, [node])])], "device_traces": []})
    assert memory.all_sites()[0].place.operator == "BmmBackward0"


@pytest.mark.parametrize(
    ("files", "short"),
    [
        (["/home/me/p/train.py", "/home/me/p/models/vit.py"], ["train.py", "models/vit.py"]),
        ([r"C:\Users\me\p\train.py", r"C:\Users\me\p\models\vit.py"], ["train.py", "models/vit.py"]),
        (["/home/me/p/scripts/../src/a.py", "/home/me/p/train.py"], ["src/a.py", "train.py"]),
        (["/home/me/p/train.py"], ["p/train.py"]),
        (["/home/me/p/train.py", "/opt/q/r/lib.py"], ["p/train.py", "r/lib.py"]),
        (["train.py", "../../x.py", ".."], ["train.py", "x.py", ".."]),
        ([], []),
    ],
)
def test_paths_lose_what_they_share(files, short):
    assert [short_paths(files)[file] for file in files] == short


@pytest.mark.parametrize(("grows", "kept"), [(512, True), (0, False), (-512, False)])
def test_what_is_replaced_by_something_larger_in_each_pass_is_kept(grows, kept):
    """A cache of three layers, as of keys and values. What is replaced by blocks of one size is no cache."""
    run = SimulatedAllocator(steps=0, seed=1)
    run.entries.clear()
    cache = [run.alloc(1 << 20, "activations") for _ in range(3)]
    for number in range(1, 9):
        for layer in range(3):
            old, cache[layer] = cache[layer], run.alloc((1 << 20) + grows * number, "activations")
            run.free(old)
    assert (told(memory_of(run.snapshot())).get("kept", 0) > 3 << 20) == kept


def test_kept_outputs_of_which_one_is_freed_are_no_cache():
    run = SimulatedAllocator(steps=0, seed=1)
    run.entries.clear()
    kept = [run.alloc((1 << 20) + 512 * number, "activations") for number in range(20)]
    run.free(kept[-2])
    assert "kept" not in told(memory_of(run.snapshot()))
