"""A simulated device allocator under programs of many kinds, with what each block is for.

A program allocates as torch does: parameters once, batches, activations that autograd's engine frees in reverse order,
gradients of activations that live for one node, gradients of parameters,
temporaries and states of the optimizer. The simulator knows no rule of the reader.
"""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from helpers.snapshots import BASE, block, frame, segment

TORCH = "/opt/venv/lib/python3.12/site-packages/torch/"
MIB = 1 << 20


@dataclass(frozen=True)
class Program:
    """One kind of program. Sizes of parameters follow from `width`, `layers` and `vocabulary`."""

    optimizer: str = "adam"
    """none, sgd, momentum, adam, amsgrad, adam8 (states in 8 bits), master (weights in 16 bits), or custom (written by
    hand, makes new states in each step)."""

    kept_gradients: bool = False
    frees_gradients_first: bool = False
    """zero_grad at the begin of a step, and not at its end."""

    trains: bool = True
    """False: a forward pass alone."""

    no_grad: bool = False
    cache: bool = False
    """Each forward pass keeps a block, as generation with a cache of keys and values does."""

    checkpoints: bool = False
    blocks: bool = False
    """Each layer is a module that one line of the model calls in a loop."""

    micro_batches: int = 1
    foreach: bool = True
    fused: bool = False
    """The optimizer has no intermediate results."""
    hand_written_attention: bool = False
    annotated: bool = True
    steps: int = 3
    recorded_from: tuple[int, str] | None = None
    """Step and phase (forward, backward, optimizer) with which the history begins; None: before the model is made."""

    lost: int = 0
    """Allocations and frees that a full ring overwrote: the history begins after them."""

    stacks: str = "all"
    """all, python (autograd's thread has none), or unnamed (C++ frames without symbols, as on Windows)."""

    frees_have_stacks: bool = True
    batch: int = 1
    """How many times as large the batch is."""

    width: int = 512
    layers: int = 6
    vocabulary: int = 8_000


@dataclass(eq=False)
class Planted:
    """A block: its size as the allocator rounds it, and what it is for."""

    address: int
    size: int
    kind: str


class PlantedAllocations:
    """Runs a program. `snapshot()` is what torch would dump, `truth()` the bytes by kind at the peak of the history."""

    def __init__(self, program: Program, seed: int = 0) -> None:
        self.program, self.random = program, Random(seed)
        self.entries: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.live: dict[Planted, None] = {}
        self.at_start: list[tuple[Planted, str]] = []
        self.log: list[tuple[str, Planted]] = []
        self.time, self._next = 1_000_000, BASE
        self.calls = 0
        size = 2 if program.optimizer == "master" else 4
        wide = program.width * program.width
        layer = [wide] * 4 + [4 * wide] * 2 + [program.width] * 4
        self.parameter_sizes = [size * each for each in layer * program.layers + [program.vocabulary * program.width]]
        self.batch = self.random.choice((2, 4, 8)) * MIB * program.batch
        for each in self.parameter_sizes:
            self.alloc(each, "parameters", "construction")
        self.states: list[Planted] = []
        self.gradients: list[Planted] = []
        self.held: Planted | None = None
        for step in range(program.steps):
            self._step(step)

    def alloc(self, size: int, kind: str, role: str, line: int = 30) -> Planted:
        self._lose()
        made = Planted(self._next, -(-size // 512) * 512, kind)
        self._next += 1 << 32
        self.time += self.random.randint(1, 9)
        self._enter("segment_alloc", made, made.size, [])
        self._enter("alloc", made, size, self._frames(role, line))
        self.live[made] = None
        self.log.append(("alloc", made))
        return made

    def free(self, freed: Planted, role: str) -> None:
        self._lose()
        del self.live[freed]
        self.time += self.random.randint(1, 9)
        frames = self._frames(role, 90) if self.program.frees_have_stacks else []
        for action in ("free_requested", "free_completed"):
            self._enter(action, freed, freed.size, frames)
        self._enter("segment_free", freed, freed.size, [])
        self.log.append(("free", freed))

    def truth(self) -> Counter[str]:
        """Returns the bytes by kind at the peak of the history; the last of equal peaks."""
        now, most = Counter[str](), Counter[str]()
        kinds = dict(self.at_start)
        for planted, kind in kinds.items():
            now[kind] += planted.size
        most = Counter(now)
        for action, planted in self.log:
            if action == "free":
                now[kinds.pop(planted)] -= planted.size
                continue
            if action != "alloc":  # what it is from now on
                now[kinds[planted]] -= planted.size
            kinds[planted] = planted.kind if action == "alloc" else action
            now[kinds[planted]] += planted.size
            if action == "alloc" and now.total() >= most.total():
                most = Counter(now)
        return +most

    def snapshot(self) -> dict[str, Any]:
        """Returns the raw snapshot."""
        segments = [segment(it.address, [block(it.size)]) for it in self.live]
        return {"segments": segments, "device_traces": [self.entries], "external_annotations": self.annotations}

    def _begin(self, step: int, phase: str) -> None:
        """Begins the history here if the program says so."""
        if self.program.recorded_from == (step, phase):
            self._forget()

    def _lose(self) -> None:
        """Begins the history with the first call that the ring did not overwrite."""
        if self.program.lost and self.calls == self.program.lost:
            self._forget()
        self.calls += 1

    def _forget(self) -> None:
        self.entries.clear()
        self.log.clear()
        self.annotations.clear()
        self.at_start = [(it, it.kind) for it in self.live]

    def _step(self, step: int) -> None:
        program = self.program
        self._begin(step, "forward")
        if program.frees_gradients_first:
            self._free_gradients()
        for _ in range(program.micro_batches):
            batch = self.alloc(self.batch // 8, "inputs", "script")
            kept = self._forward()
            if program.trains:
                self._begin(step, "backward")
                self._backward(kept)
            else:
                for planted in kept:  # the graph goes with its last tensor
                    self.free(planted, "script")
            if self.held is not None:
                self.free(self.held, "script")
            self.held = batch
        if program.trains and program.optimizer != "none":
            self._begin(step, "optimizer")
            self._update(step)
            if not program.frees_gradients_first:
                self._free_gradients()

    def _forward(self) -> list[Planted]:
        program, kept = self.program, []
        for number in range(program.layers):
            line = 30 + number
            role, lines = ("block", range(20, 24)) if program.blocks else ("forward", [line] * 4)
            outputs = [self.alloc(self.batch, "activations", role, each) for each in lines]
            if program.hand_written_attention:
                outputs += [self.alloc(2 * self.batch, "activations", "softmax", 6) for _ in range(2)]
            brief = self.alloc(self.batch, "temporaries", role, lines[-1])
            self.free(brief, "forward")
            if program.no_grad:
                for planted in outputs:
                    planted.kind = "temporaries"
                    self.free(planted, "forward")
            elif program.checkpoints:
                for planted in outputs[1:]:
                    planted.kind = "temporaries"
                    self.free(planted, "forward")
                kept.append(outputs[0])
            else:
                kept += outputs
            if program.cache:
                self.alloc(self.batch // 4, "activations", "forward", line)
        return kept

    def _backward(self, kept: list[Planted]) -> None:
        program = self.program
        if program.optimizer == "none":
            self._free_gradients()
        sizes = list(self.parameter_sizes)
        per_layer = max(len(kept) // program.layers, 1)
        passing = self.alloc(self.batch, "temporaries", "engine")
        first = not self.gradients
        for _ in range(program.layers):
            recomputed = []
            if program.checkpoints:
                recomputed = [self.alloc(self.batch, "temporaries", "recompute") for _ in range(4)]
            for _ in range(per_layer):
                after = self.alloc(self.batch, "temporaries", "engine")
                self.free(passing, "engine")
                passing = after
                self.free(kept.pop(), "engine")
            for planted in reversed(recomputed):
                self.free(planted, "engine")
            for size in [sizes.pop() for _ in range(len(self.parameter_sizes) // program.layers)]:
                self._gradient(size, first)
        for size in sizes:
            self._gradient(size, first)
        self.free(passing, "engine")

    def _gradient(self, size: int, first: bool) -> None:
        """A gradient becomes `.grad`, or is added to it and freed."""
        gradient = self.alloc(size, "gradients" if first else "temporaries", "engine")
        if first:
            self.gradients.append(gradient)
        else:
            self.free(gradient, "engine")

    def _free_gradients(self) -> None:
        if self.program.kept_gradients:
            return
        for gradient in self.gradients:
            self.free(gradient, "zero_grad")
        self.gradients = []

    def _update(self, step: int) -> None:
        program = self.program
        self._annotate("START")
        makes, factor = {
            "sgd": (0, 1.0), "momentum": (1, 1.0), "adam": (2, 1.0), "amsgrad": (3, 1.0), "adam8": (2, 0.25),
            "master": (3, 2.0), "custom": (2, 1.0),
        }[program.optimizer]  # fmt: skip
        if program.optimizer == "custom":
            self._replace_states()
        else:
            if not self.states:
                for size in self.parameter_sizes:
                    self.states += [self.alloc(int(size * factor), "optimizer", "optimizer") for _ in range(makes)]
            brief = []
            for size in self.parameter_sizes if makes and not program.fused else ():
                brief.append(self.alloc(int(size * factor), "temporaries", "optimizer", 80))
                if not program.foreach:
                    self.free(brief.pop(), "optimizer")
            for planted in brief:
                self.free(planted, "optimizer")
        self._annotate("END")

    def _replace_states(self) -> None:
        """`m = beta * m + ...` per parameter: the old state is freed once the new one exists."""
        old, self.states = self.states, []
        for number, size in enumerate(self.parameter_sizes):
            for state in range(2):
                product = self.alloc(size, "temporaries", "custom", 70)
                if old:
                    self.log.append(("temporaries", old[2 * number + state]))  # left over from here on
                self.states.append(self.alloc(size, "optimizer", "custom", 71 + state))
                if old:
                    self.free(old[2 * number + state], "custom")
                self.free(product, "custom")

    def _annotate(self, stage: str) -> None:
        self.time += 3
        if self.program.annotated:
            name = "Optimizer.step#AdamW.step"
            self.annotations.append({"name": name, "stage": stage, "device": 0, "time_us": self.time})

    def _enter(self, action: str, of: Planted, size: int, frames: list[dict[str, Any]]) -> None:
        self.entries.append(
            {"action": action, "addr": of.address, "size": size, "stream": 0, "time_us": self.time, "frames": frames}
        )

    def _frames(self, role: str, line: int) -> list[dict[str, Any]]:
        script = frame("/home/me/project/train.py", 200, "<module>")
        model = frame("/home/me/project/model.py", line, "forward")
        called = [frame(TORCH + "nn/modules/module.py", 1751, "_call_impl"), script]
        python = {
            "construction": [frame("/home/me/project/model.py", 12, "__init__"), script],
            "forward": [frame(TORCH + "nn/modules/linear.py", 125, "forward"), model, *called],
            "block": [frame(TORCH + "nn/modules/linear.py", 125, "forward"),
                      frame("/home/me/project/block.py", line, "forward"),
                      frame(TORCH + "nn/modules/module.py", 1751, "_call_impl"),
                      frame("/home/me/project/model.py", 33, "forward"), *called],
            "softmax": [frame("/home/me/project/attention.py", line, "softmax"),
                        frame("/home/me/project/attention.py", 40, "attention"), model, *called],
            "recompute": [frame(TORCH + "utils/checkpoint.py", 1128, "unpack_hook"), model],
            "engine": [],
            "optimizer": [frame(TORCH + "optim/adam.py", 400, "_multi_tensor_adam"),
                          frame(TORCH + "optim/optimizer.py", 526, "wrapper"), script],
            "custom": [frame("/home/me/project/optimizer.py", line, "step"),
                       frame(TORCH + "optim/optimizer.py", 526, "wrapper"), script],
            "zero_grad": [frame(TORCH + "optim/optimizer.py", 990, "zero_grad"), script],
            "script": [script],
        }[role]  # fmt: skip
        if self.program.stacks == "python":
            return python
        engine = role in ("engine", "recompute")
        if self.program.stacks == "unnamed":
            return [frame("", 0, "<unknown>"), *python, *([frame("", 0, "<unknown>")] if engine else [])]
        native = [frame("", 0, "torch::autograd::Engine::evaluate_function(std::shared_ptr<>)")] if engine else []
        return [frame("CUDACachingAllocator.cpp", 0, "c10::cuda::CUDACachingAllocator::malloc"), *python, *native]
