"""The account of a simulated allocator's snapshot has the bytes that the simulation put there."""

import pickle
from collections import Counter
from random import Random

import pytest
from helpers.snapshots import BASE, block, frame, random_snapshot, segment

from tb_bottleneck.memory.snapshot_memory import SnapshotMemory, snapshot_memory
from tb_bottleneck.sources.snapshot.allocator_snapshot import snapshot_of

TORCH = "/usr/lib/python3.11/site-packages/torch/"
STACKS = {
    "parameters": [frame(TORCH + "nn/modules/module.py", 100, "_apply"), frame("/home/me/train.py", 10, "main")],
    "activations": [frame(TORCH + "nn/modules/linear.py", 125, "forward"), frame("/home/me/model.py", 31, "forward")],
    "gradients": [frame("", 0, "torch::autograd::Engine::evaluate_function(std::shared_ptr<>)")],
    "optimizer": [frame(TORCH + "optim/adamw.py", 155, "_init_group"), frame("/home/me/train.py", 44, "step")],
    "inputs": [frame(TORCH + "utils/data/_utils/pin_memory.py", 57, "pin_memory")],
    "workspaces": [frame("", 0, "at::cuda::getNewWorkspace()")],
    "communication": [frame("", 0, "c10d::ProcessGroupNCCL::allreduce")],
}
SIZES = (512, 4096, 1 << 20)


class SimulatedAllocator:
    """Steps of a training on a device, each block in a segment of its own. `truth` has the bytes at the peak."""

    def __init__(self, steps: int, seed: int, *, recorded_from: int | None = None) -> None:
        self.random = Random(seed)
        self.entries: list[dict] = []
        self.live: dict[int, tuple[int, str]] = {}
        self.reserved: dict[int, int] = {}
        self.now: Counter[str] = Counter()
        self.truth: Counter[str] = Counter()
        self.annotations: list[dict] = []
        self.time = 1_000_000
        self._next = BASE
        for size in SIZES * 2:
            self.alloc(size, "parameters")
        self.alloc(8 << 20, "workspaces")
        self.alloc(4 << 20, "communication")
        self.alloc(1 << 21, "inputs")
        for step in range(steps):
            if step == recorded_from:
                self.entries.clear()
                self.annotations.clear()
            self.step(first=step == 0)

    def alloc(self, size: int, category: str, stack: str | None = None) -> int:
        address, self._next = self._next, self._next + (1 << 30)
        self.time += 5
        self.entries.append(self._entry("segment_alloc", address, size, []))
        self.entries.append(self._entry("alloc", address, size, STACKS[stack or category]))
        self.live[address] = (size, category)
        self.reserved[address] = size
        self.now[category] += size
        if sum(self.now.values()) >= sum(self.truth.values()):
            self.truth = Counter(self.now)
        return address

    def free(self, address: int) -> None:
        size, category = self.live.pop(address)
        self.now[category] -= size
        self.time += 5
        for action in ("free_requested", "free_completed", "segment_free"):
            self.entries.append(self._entry(action, address, size, []))
        del self.reserved[address]

    def step(self, first: bool) -> None:
        activations = []
        for _ in range(4):
            brief = self.alloc(512 * self.random.randint(1, 50), "temporaries", "activations")
            activations.append(self.alloc(3 << 20, "activations"))
            self.free(brief)
        gradients = []
        for size in SIZES * 2:
            brief = self.alloc(2 << 20, "temporaries", "gradients")
            gradients.append(self.alloc(size, "gradients"))
            self.free(brief)
            if activations:
                self.free(activations.pop())
        for stage in ("START", "END"):
            self.time += 5
            scope = {"name": "Optimizer.step#AdamW.step", "stage": stage, "device": 0, "time_us": self.time}
            self.annotations.append(scope)
            if stage == "START":
                brief = self.alloc(1 << 20, "temporaries", "optimizer")
                if first:
                    for size in SIZES * 4:
                        self.alloc(size, "optimizer")
                self.free(brief)
        for gradient in gradients:
            self.free(gradient)

    def snapshot(self, keep_frames: bool = True) -> dict:
        segments = [
            segment(address, [block(size, self._frames(address) if keep_frames else None)])
            for address, size in self.reserved.items()
        ]
        return {"segments": segments, "device_traces": [self.entries], "external_annotations": self.annotations}

    def _frames(self, address: int) -> list[dict]:
        return STACKS[self.live[address][1]]

    def _entry(self, action: str, address: int, size: int, frames: list[dict]) -> dict:
        return {
            "action": action, "addr": address, "size": size, "stream": 0, "time_us": self.time, "frames": frames,
        }  # fmt: skip


def memory_of(raw: dict) -> SnapshotMemory:
    return snapshot_memory(snapshot_of(iter([pickle.dumps(raw)])))


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
        truth["unexplained"] = unknown
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
    assert told(memory) == {"graphs": 4608, "fragmentation": 3072, "cache": 2048, "unexplained": 1024}
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
    assert memory.sites() == []


def test_lines_of_the_program_are_named():
    sites = memory_of(SimulatedAllocator(3, 0).snapshot()).sites()
    lines = {(site.category.value, site.file, site.line) for site in sites}
    assert ("activations", "/home/me/model.py", 31) in lines
    assert ("optimizer", "/home/me/train.py", 44) in lines
    assert [site.bytes for site in sites] == sorted((site.bytes for site in sites), reverse=True)


def test_the_device_with_the_most_memory_is_chosen():
    raw = {"segments": [segment(BASE, [block(512)]), segment(BASE + 4096, [block(4096)], device=1)]}
    assert memory_of(raw).device == 1
