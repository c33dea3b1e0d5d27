"""A simulated device allocator with its snapshot: what each block is for, and the state at the peak, are known."""

from collections import Counter
from random import Random

from helpers.snapshots import BASE, block, frame, segment

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

    def __init__(self, steps: int, seed: int, *, recorded_from: int | None = None, leak: int = 0) -> None:
        self.random, self.leak = Random(seed), leak
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
        if self.leak:
            self.alloc(self.leak, "activations")

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
