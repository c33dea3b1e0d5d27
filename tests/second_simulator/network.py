"""Model of a network in eager mode: the operators, kernels and Python calls of forward, backward and optimizer."""

from dataclasses import dataclass

from second_simulator.kernels import Kernel, elementwise, matrix_product
from second_simulator.machine import AUTOGRAD, MAIN, NCCL_STREAM, STREAM, Machine

OPS = {
    "Linear": ("aten::addmm", "AddmmBackward0", "aten::mm"),
    "LayerNorm": ("aten::native_layer_norm", "NativeLayerNormBackward0", "aten::native_layer_norm_backward"),
    "ReLU": ("aten::relu", "ReluBackward0", "aten::threshold_backward"),
}
"""Per module: the operator of its forward pass, the node of its gradient, and the operator of that."""


@dataclass(frozen=True)
class Layer:
    """A module on `rows` vectors of `width` elements. A linear one has `inner` inputs."""

    module: str
    rows: int
    width: int
    inner: int = 0


class Network:
    """A stack of layers. `overhead` scales the host time of operators; `exchange` is what ranks add up per bucket."""

    exchange: Kernel | None = None

    def __init__(self, m: Machine, layers: list[Layer], half: bool = True, overhead: float = 1.0) -> None:
        self.m, self.layers, self.half, self.overhead = m, layers, half, overhead

    def _op(self, name: str, kernel: Kernel, *dims: list[int]) -> None:
        with self.m.op(name, *dims, half=self.half, us=8.0 * self.overhead):
            self.m.launch(kernel)

    def _elementwise(self, name: str, layer: Layer, operands: int) -> None:
        kernel = elementwise(self.m.device, layer.rows * layer.width, self.half, operands)
        self._op(name, kernel, [layer.rows, layer.width])

    def product(self, name: str, m: int, n: int, k: int) -> None:
        bias = [[n]] if name == "aten::addmm" else []
        self._op(name, matrix_product(self.m.device, m, n, k, self.half), *bias, [m, k], [k, n])

    def forward(self) -> None:
        for number, layer in enumerate(self.layers):
            with (
                self.m.frame(f"nn.Module: {layer.module}_{number}"),
                self.m.frame("torch/nn/modules/module.py(1773): _call_impl"),
            ):
                self.m.work("launch", 6.0 * self.overhead)
                if layer.inner:
                    self.product(OPS[layer.module][0], layer.rows, layer.width, layer.inner)
                else:
                    self._elementwise(OPS[layer.module][0], layer, 3)

    def backward(self) -> None:
        """Computes the loss and the gradients, these in the autograd thread while the main thread waits."""
        m = self.m
        self._elementwise("aten::cross_entropy_loss", Layer("", self.layers[-1].rows, 1000), 2)
        with m.frame("torch/_tensor.py(592): backward"), m.frame("torch/autograd/graph.py(829): _engine_run_backward"):
            m.work("launch", 30.0)
            m.tid = AUTOGRAD
            for number, layer in enumerate(reversed(self.layers), 1):
                self._gradient(layer)
                if self.exchange and number % 3 == 0:
                    self._reduce(self.exchange)
            m.tid = MAIN
            m.work("launch", 15.0)
        if self.exchange:
            m.order(NCCL_STREAM, STREAM)

    def _gradient(self, layer: Layer) -> None:
        _, node, op = OPS[layer.module]
        with self.m.op(f"autograd::engine::evaluate_function: {node}", us=6.0 * self.overhead), self.m.op(node):
            if layer.inner:
                self.product(op, layer.rows, layer.inner, layer.width)
                self.product(op, layer.inner, layer.width, layer.rows)
            else:
                self._elementwise(op, layer, 4)

    def _reduce(self, exchange: Kernel) -> None:
        self.m.order(STREAM, NCCL_STREAM)
        with self.m.annotation("nccl:all_reduce"), self.m.op("c10d::allreduce_", us=20.0):
            self.m.launch(exchange, NCCL_STREAM, "cudaLaunchKernelExC")

    def optimize(self) -> None:
        m, elements = self.m, sum(layer.width * layer.inner for layer in self.layers)
        with m.frame("torch/optim/optimizer.py(496): wrapper"), m.annotation("Optimizer.step#AdamW.step"):
            for op in ("lerp_", "mul_", "addcmul_", "sqrt", "addcdiv_"):
                with m.op(f"aten::_foreach_{op}", us=60.0):
                    m.launch(elementwise(m.device, elements, False))

    def train(self) -> None:
        """One optimizer step on a batch that is on the device."""
        with self.m.annotation("Optimizer.zero_grad#AdamW.zero_grad"):
            self.m.work("launch", 15.0)
        self.forward()
        self.backward()
        self.optimize()


def read_scalar(m: Machine) -> None:
    """tensor.item()."""
    frame = m.frame("<built-in method item of Tensor object at 0x7f1c5a0>")
    with frame, m.op("aten::item", []), m.op("aten::_local_scalar_dense", []):
        m.copy("DtoH (Device -> Pinned)", 4, m.device.pinned)


def move(m: Machine, kind: str, megabytes: float) -> None:
    """tensor.to(device), with non_blocking if the memory is pinned."""
    size, pinned = int(megabytes * 1e6), "Pinned" in kind
    with m.op("aten::to", [size // 4]), m.op("aten::_to_copy", [size // 4]), m.op("aten::copy_", [size // 4]):
        m.copy(kind, size, m.device.pinned if pinned else m.device.pageable, blocking=not pinned)
