"""Draws the trace of a GPT with tied embeddings, as nanoGPT has it: all products of its steps with their shapes.

    step    forward of each block, head │ backward of head, blocks, with their forward again if checkpointed │ …
    gpu     one kernel per product

The shapes, the order and the sequence numbers are those that torch 2.13 records.
"""

import json
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

STEPS, STEP_US = 4, 20_000
BF16 = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
FLASH = "void pytorch_flash::flash_fwd_kernel<cutlass::bfloat16_t>"


@dataclass(frozen=True)
class Gpt:
    """The sizes of the model, and what is recorded of it."""

    layers: int = 4
    heads: int = 4
    width: int = 256
    length: int = 128
    batch: int = 8
    vocabulary: int = 1000
    checkpoint: bool = False
    frozen: bool = False  # all weights but those of the head
    trained: bool = True
    kernel: str = BF16
    operand: str = "c10::BFloat16"
    device: str = "NVIDIA A100-SXM4-80GB"
    shapes: bool = True
    shapes_of_backward: bool = True
    step_us: int = STEP_US

    @property
    def tokens(self) -> int:
        return self.batch * self.length

    @property
    def products(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of the linear layers of a block."""
        d = self.width
        return [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)]

    @property
    def block_weights(self) -> int:
        return sum(a * b for a, b in self.products)

    @property
    def attention_flops(self) -> int:
        """Forward, of one block, with all of the scores."""
        return 4 * self.batch * self.heads * self.length**2 * (self.width // self.heads)

    @property
    def parameters(self) -> int:
        d = self.width
        block = self.block_weights + sum(b for _, b in self.products) + 2 * 2 * d
        return self.layers * block + 2 * d + self.vocabulary * d + self.length * d

    def trace(self) -> dict[str, Any]:
        """Returns the Kineto trace."""
        return _Writer(self).trace()

    def write(self, folder: Path) -> str:
        """Writes the trace and returns its path."""
        path = folder / "gpt.pt.trace.json"
        path.write_text(json.dumps(self.trace()))
        return str(path)


@dataclass
class _Writer:
    gpt: Gpt
    events: list[dict[str, Any]] = field(default_factory=list)
    number: Any = field(default_factory=lambda: count(1))
    sequence: Any = field(default_factory=lambda: count(1))
    now: float = 0.0

    def trace(self) -> dict[str, Any]:
        for step in range(STEPS):
            self.now = step * self.gpt.step_us
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": self.now, "dur": self.gpt.step_us}
            self.events.append({"ph": "X", "pid": 1, "tid": 1} | mark)
            self._step()
        header = {"deviceProperties": [{"id": 0, "name": self.gpt.device, "numSms": 108}], "record_shapes": 1}
        return header | {"schemaVersion": 1, "traceEvents": self.events}

    def _step(self) -> None:
        gpt = self.gpt
        self._operator("aten::embedding", [[gpt.vocabulary, gpt.width], [gpt.batch, gpt.length], [], [], []])
        self._operator("aten::embedding", [[gpt.length, gpt.width], [gpt.length], [], [], []])
        forward = [self._block() for _ in range(gpt.layers)]
        head = self._product(gpt.width, gpt.vocabulary)
        if not gpt.trained:
            return
        self._backward(head, gpt.width, gpt.vocabulary, weight=True)
        for numbers in reversed(forward):
            again = self._block(inside=numbers[0]) if gpt.checkpoint else numbers
            assert len(again) == len(numbers)
            for number, (inputs, outputs) in zip(reversed(numbers[1:]), reversed(gpt.products), strict=True):
                self._backward(number, inputs, outputs, weight=not gpt.frozen)
            self._attention(backward=numbers[0])

    def _block(self, inside: int | None = None) -> list[int]:
        """Returns the sequence numbers of attention and of the four products."""
        if inside is not None:
            begin = self.now
            numbers = self._block()
            self._node("MmBackward0", inside, begin)
            return numbers
        qkv = self._product(*self.gpt.products[0])
        attention = self._attention()
        return [attention, qkv, *(self._product(*sizes) for sizes in self.gpt.products[1:])]

    def _product(self, inputs: int, outputs: int) -> int:
        dims = [[outputs], [self.gpt.tokens, inputs], [inputs, outputs], [], []]
        return self._operator("aten::addmm", dims, kernel=self.gpt.kernel, sequence=next(self.sequence))

    def _attention(self, backward: int | None = None) -> int:
        gpt = self.gpt
        shape = [gpt.batch, gpt.heads, gpt.length, gpt.width // gpt.heads]
        name = "aten::_scaled_dot_product_flash_attention"
        if backward is None:
            concrete = ["", "", "", "0.", "True", "False", ""]
            return self._operator(name, [shape] * 3 + [[]] * 4, concrete, kernel=FLASH, sequence=next(self.sequence))
        concrete = [""] * 10 + ["0.", "True", "", "", ""]
        begin, self.now = self.now, self.now + 1
        self._operator(name + "_backward", [shape] * 5 + [[]] * 10, concrete, kernel=FLASH, recorded=self._of_backward)
        self._node("ScaledDotProductFlashAttentionBackward0", backward, begin)
        return backward

    def _backward(self, number: int, inputs: int, outputs: int, weight: bool) -> None:
        begin, self.now = self.now, self.now + 1
        tokens = self.gpt.tokens
        gradients = [[[tokens, outputs], [outputs, inputs]]] + [[[inputs, tokens], [tokens, outputs]]] * weight
        for dims in gradients:
            self._operator("aten::mm", dims, kernel=self.gpt.kernel, recorded=self._of_backward)
        self._node("AddmmBackward0", number, begin)
        if weight:
            name = "torch::autograd::AccumulateGrad"
            begin, self.now = self.now, self.now + 1
            self._operator(name, [[inputs, outputs]])
            self._node(name, 0, begin)

    @property
    def _of_backward(self) -> bool:
        return self.gpt.shapes_of_backward

    def _operator(
        self,
        name: str,
        dims: list[list[int]],
        concrete: list[str] | None = None,
        kernel: str = "",
        sequence: int = 0,
        recorded: bool = True,
    ) -> int:
        types = [self.gpt.operand if shape else "" for shape in dims]
        args: dict[str, Any] = {"Sequence number": sequence, "Fwd thread id": 0} if sequence else {}
        if self.gpt.shapes and recorded:
            args |= {"Input Dims": dims, "Input type": types, "Concrete Inputs": concrete or [""] * len(dims)}
        row = {"ph": "X", "pid": 1, "tid": 1, "ts": self.now}
        self.events.append(row | {"cat": "cpu_op", "name": name, "dur": 10, "args": args})
        if kernel:
            link = {"correlation": next(self.number), "device": 0, "stream": 7, "grid": [54, 1, 1]}
            link |= {"est. achieved occupancy %": 25}
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": self.now + 2, "dur": 3, "args": link}
            self.events.append(row | call)
            work = {"cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": self.now + 8, "dur": 40, "args": link}
            self.events.append(row | work)
        self.now += 45
        return sequence

    def _node(self, name: str, number: int, begin: float) -> None:
        """Adds the node of autograd that encloses what ran since `begin`."""
        args = {"Sequence number": number, "Fwd thread id": 1} if number else {}
        name = f"autograd::engine::evaluate_function: {name}"
        row = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": begin, "dur": self.now - begin - 1}
        self.events.append(row | {"name": name, "args": args})
