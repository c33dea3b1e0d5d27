"""A simulated training with known memory: what each block is for, and when it exists."""

from collections import Counter
from random import Random

from helpers.memory_recordings import RecordedAllocator

GRADIENT_SIZES = (512, 4096, 1 << 20)
STEP_US = 1000.0


class SimulatedTraining:
    """Steps of a small model on a device. `truth` has the bytes in use by category after each memory event."""

    def __init__(
        self,
        steps: int = 4,
        *,
        seed: int = 0,
        layers: int = 4,
        built: bool = False,
        state: int = 2,
        leak: int = 0,
        batch: int = 1,
        cpu: bool = False,
        optimizer: str = "AdamW",
    ) -> None:
        self.random = Random(seed)
        self.layers, self.batch, self.leak, self.optimizer = layers, batch, leak, optimizer
        self.state = state
        self.parameters = [GRADIENT_SIZES[index % 3] for index in range(layers)]
        total = sum(self.parameters)
        before = 0 if built or cpu else total * (1 + state)
        kind = (0, -1) if cpu else (1, 0)
        self.allocator = RecordedAllocator(*kind, allocated=before, reserved=before)
        self.truth: list[Counter[str]] = []
        self._now: Counter[str] = Counter()
        if before:
            self._now += Counter({"parameters": total, "optimizer": total * state})
        self._of: dict[int, str] = {}
        self._gradients: list[int] = []
        self._kept: list[int] = []
        self._first = built
        if built:
            for index, size in enumerate(self.parameters):
                self._alloc(-500 + index, size, "parameters")
        for step in range(steps):
            self._step(step, step * STEP_US)

    def peak(self) -> Counter[str]:
        """Returns the bytes by category at the event with the most bytes; the last of equal ones."""
        most = max(sum(state.values()) for state in self.truth)
        return next(state for state in reversed(self.truth) if sum(state.values()) == most)

    def _alloc(self, at: float, size: int, category: str) -> int:
        block = self.allocator.alloc(at, size)
        self._of[block] = category
        self._now[category] += size
        self.truth.append(Counter(self._now))
        return block

    def _free(self, at: float, block: int) -> None:
        size = self.allocator._sizes[block]
        self.allocator.free(at, block)
        self._now[self._of.pop(block)] -= size
        self.truth.append(Counter(self._now))

    def _step(self, number: int, at: float) -> None:
        spans = self.allocator.span
        spans(f"ProfilerStep#{number}", at, at + STEP_US - 1, "user_annotation")
        spans(f"Optimizer.zero_grad#{self.optimizer}.zero_grad", at + 1, at + 20, "user_annotation")
        for index, block in enumerate(self._gradients):
            self._free(at + 2 + index, block)
        spans("aten::randn", at + 30, at + 35)
        batch = self._alloc(at + 31, 512 * self.batch, "inputs")
        activations = self._forward(at + 100)
        self._gradients = self._backward(at + 400, activations)
        spans(f"Optimizer.step#{self.optimizer}.step", at + 800, at + 900, "user_annotation")
        for index, size in enumerate(self.parameters):
            temporary = self._alloc(at + 810 + 4 * index, size, "temporaries")
            if self._first and self.state:
                self._alloc(at + 811 + 4 * index, size * self.state, "optimizer")
            self._free(at + 812 + 4 * index, temporary)
        self._first = False
        self._free(at + 950, batch)

    def _forward(self, at: float) -> list[int]:
        kept = []
        for layer in range(self.layers):
            begin = at + 50 * layer
            self.allocator.span("aten::linear", begin, begin + 40)
            temporary = self._alloc(begin + 5, 512 * self.batch * self.random.randint(1, 9), "temporaries")
            kept.append(self._alloc(begin + 10, (1 << 18) * self.batch, "activations"))
            self._free(begin + 20, temporary)
        if self.leak:
            self._kept.append(self._alloc(at + 50 * self.layers - 15, self.leak, "activations"))
        return kept

    def _backward(self, at: float, activations: list[int]) -> list[int]:
        gradients = []
        for layer in reversed(range(self.layers)):
            begin = at + 60 * (self.layers - 1 - layer)
            self.allocator.span("autograd::engine::evaluate_function: AddmmBackward0", begin, begin + 55)
            self.allocator.span("aten::mm", begin + 5, begin + 20)
            temporary = self._alloc(begin + 6, (1 << 17) * self.batch, "temporaries")
            gradients.append(self._alloc(begin + 12, self.parameters[layer], "gradients"))
            self._free(begin + 30, activations[layer])
            self._free(begin + 40, temporary)
        return gradients
