"""Calibration: timing with a manual clock, a real run on the CPU, and a fake GPU that works on the CPU and counts
calls."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.doctor import calibration
from tb_bottleneck.monitor.facts import device

torch = pytest.importorskip("torch")


class Hand:
    """A clock in nanoseconds, and a device that spends its time when it is synchronised."""

    def __init__(self) -> None:
        self.now = 0
        self.queued = 0

    def clock(self) -> int:
        return self.now

    def launch(self, host_ns: int, device_ns: int) -> None:
        self.now += host_ns
        self.queued += device_ns

    def synchronize(self) -> None:
        self.now += self.queued
        self.queued = 0


def test_a_run_takes_as_long_as_the_device_needs_for_it() -> None:
    hand = Hand()
    bench = calibration.BenchmarkDevice(None, None, hand.synchronize, 0.2, hand.clock)
    assert bench.seconds_of(lambda: hand.launch(0, 3_000_000)) == pytest.approx(0.003)
    assert 0.1 <= hand.now / 1e9 <= 0.3


def test_the_best_round_counts() -> None:
    hand = Hand()
    times = iter([9_000_000] * 4 + [5_000_000] * 3 + [4_000_000] * 3 + [8_000_000] * 1000)
    bench = calibration.BenchmarkDevice(None, None, hand.synchronize, 0.1, hand.clock)
    assert bench.seconds_of(lambda: hand.launch(0, next(times))) < 0.006


def test_the_launch_cost_does_not_depend_on_the_device_work() -> None:
    hand = Hand()
    bench = calibration.BenchmarkDevice(None, None, hand.synchronize, 0.2, hand.clock)
    assert bench.host_seconds_of(lambda: hand.launch(4_000, 90_000), 500) == pytest.approx(4e-6)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "SECONDS_EACH", 0.01)
    monkeypatch.setattr(calibration, "CPU_SIDE", 256)
    monkeypatch.setattr(calibration, "CPU_COPY_BYTES", 1 << 20)
    monkeypatch.setattr(calibration, "LINK_BYTES", 1 << 20)


@pytest.mark.usefixtures("quick")
def test_the_cpu_of_this_machine() -> None:
    before = torch.get_float32_matmul_precision()
    measured = calibration.calibrate("cpu")
    assert measured.figures.keys() == {"fp32_flops", "copy_bytes_per_s"}
    assert 1e8 < measured.figures["fp32_flops"] < 1e14
    assert 1e8 < measured.figures["copy_bytes_per_s"] < 1e13
    assert measured.left_out == {}
    assert torch.get_float32_matmul_precision() == before


class Pretended:
    """A fake torch with one GPU, with tensors on the CPU and without bf16."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.version = SimpleNamespace(hip=None)
        self.precisions: list[str] = []
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            device_count=lambda: 1,
            current_device=lambda: 0,
            device=self.chosen,
            synchronize=lambda: None,
            mem_get_info=lambda device: (2 << 20, 2 << 20),
            get_device_name=lambda index: "NVIDIA Pretended",
            get_device_capability=lambda device: capability,
        )

    @contextmanager
    def chosen(self, device: object):
        yield

    def __getattr__(self, name: str) -> Any:
        known = getattr(torch, name)
        if name not in ("rand", "ones", "zeros"):
            return known

        def make(*sizes: int, device: object = None, pin_memory: bool = False, **kinds: Any) -> Any:
            return known(*sizes, **kinds)

        return make

    def mm(self, left: Any, right: Any, out: Any) -> Any:
        if left.dtype == torch.bfloat16:
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\nwith details")
        self.precisions.append(torch.get_float32_matmul_precision())
        return torch.mm(left, right, out=out)


@pytest.mark.usefixtures("quick")
def test_a_gpu_is_measured_in_full_and_what_it_has_not_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Pretended((8, 0))
    monkeypatch.setattr(calibration, "_torch", lambda: gpu)
    monkeypatch.setattr(device, "nvidia_driver", lambda: "570.86.15")
    measured = calibration.calibrate()
    assert (measured.device, measured.driver) == ("NVIDIA Pretended", "570.86.15")
    assert measured.figures.keys() | {"bf16_flops"} == set(calibrations.NAMES)
    assert measured.left_out == {"bf16_flops": "CUBLAS_STATUS_NOT_SUPPORTED"}
    assert all(value > 0 for value in measured.figures.values())
    assert {"high", "highest"} == set(gpu.precisions), "TF32 for one figure only"


@pytest.mark.usefixtures("quick")
def test_before_ampere_there_is_no_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Pretended((7, 5))
    monkeypatch.setattr(calibration, "_torch", lambda: gpu)
    monkeypatch.setattr(device, "nvidia_driver", lambda: "570.86.15")
    measured = calibration.calibrate("cuda:0")
    assert "8.0" in measured.left_out["tf32_flops"]
    assert set(gpu.precisions) == {"highest"}


@pytest.mark.parametrize("device", ["cuda:7", "nonsense", "meta"])
def test_a_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(NotFound, match=device):
        calibration.calibrate(device)
