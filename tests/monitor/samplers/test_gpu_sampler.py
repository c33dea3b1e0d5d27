"""The sampler of GPUs outlives its driver: what is refused goes off with a reason, and is tried again in time."""

from monitor.samplers.replay import Replay

from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice
from tb_bottleneck.monitor.samplers.gpu_sampler import LOOK_AGAIN_S, RETRY_S, GpuSampler
from tb_bottleneck.monitor.samplers.nvml.queries import queries
from tb_bottleneck.monitor.samplers.own_gpus import UnknownGpus

FIRST, SECOND = "GPU-11111111-1111-1111-1111-111111111111", "GPU-22222222-2222-2222-2222-222222222222"


class Asked:
    """A question whose answers are set by the test."""

    signals = ("power",)
    every_s = 1.0

    def __init__(self) -> None:
        self.answer: float | DriverError = 1.0
        self.times = 0

    def ask(self, driver: Replay, gpu: GpuDevice) -> dict[str, float]:
        self.times += 1
        if isinstance(self.answer, DriverError):
            raise self.answer
        return {"power": self.answer}


class Bench:
    """A sampler of the first GPU with one question, on a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.replay, self.question = Replay("h200.json"), Asked()
        self.ours = 1
        self.gpus = GpuSampler(self.replay, [self.question], self.choose, lambda: self.now)

    def choose(self, gpus: list[GpuDevice]) -> list[GpuDevice]:
        if not self.ours:
            raise UnknownGpus("not begun")
        return gpus[: self.ours]

    def after(self, seconds: float) -> list[float]:
        self.now += seconds
        return [reading.value for reading in self.gpus.read()]


def test_a_lasting_refusal_is_asked_once() -> None:
    bench = Bench()
    bench.question.answer = DriverError("not on this GPU", lasting=True)
    assert [bench.after(1) for _ in range(200)] == [[]] * 200
    assert bench.question.times == 1
    assert bench.gpus.missing() == {"power": "not on this GPU"}


def test_a_passing_refusal_is_tried_again_after_a_while() -> None:
    bench = Bench()
    bench.question.answer = DriverError("busy")
    bench.after(1)
    bench.question.answer = 2.0
    assert [bench.after(1) for _ in range(int(RETRY_S) - 1)] == [[]] * (int(RETRY_S) - 1)
    assert bench.after(1) == [2.0]
    assert bench.gpus.missing() == {}


def test_a_lost_gpu_closes_the_driver_and_opens_it_anew_later() -> None:
    bench = Bench()
    assert bench.after(1) == [1.0]
    bench.question.answer = DriverError("the driver has lost the GPU", lost=True)
    assert bench.after(1) == []
    assert (bench.replay.opened, bench.replay.closed) == (1, 1)
    assert bench.gpus.missing() == {"power": "the driver has lost the GPU"}
    bench.question.answer = 3.0
    assert bench.after(RETRY_S / 2) == []
    assert bench.replay.opened == 1, "a driver that is being reset is left in peace"
    assert bench.after(RETRY_S / 2) == [3.0]


def test_after_a_loss_no_other_question_is_put() -> None:
    replay = Replay("h200.json")
    gpus = GpuSampler(replay, queries(), lambda gpus: gpus[:1], lambda: 0.0)
    list(gpus.missing())
    replay.broken = DriverError("gone", lost=True)
    assert list(gpus.read()) == []
    assert len(replay.asked) == 1


def test_without_a_driver_all_is_missing_and_it_is_never_looked_for_again() -> None:
    bench = Bench()
    bench.replay.broken = DriverError("no driver", lasting=True)
    assert [bench.after(RETRY_S) for _ in range(5)] == [[]] * 5
    assert bench.replay.opened == 1
    assert bench.gpus.missing() == {"power": "no driver"}


def test_a_gpu_that_is_taken_later_joins_in() -> None:
    bench = Bench()
    bench.ours = 0
    assert bench.after(1) == []
    assert bench.gpus.missing() == {"power": "not begun"}
    bench.ours = 1
    assert bench.after(1) == [1.0]
    bench.ours = 2
    assert bench.after(LOOK_AGAIN_S) == [1.0, 1.0]


def test_a_signal_that_one_gpu_gives_is_not_missing() -> None:
    bench = Bench()
    bench.ours = 2

    def ask(driver: Replay, gpu: GpuDevice) -> dict[str, float]:
        if gpu.uuid == SECOND:
            raise DriverError("not on this one", lasting=True)
        return {"power": 5.0}

    bench.question.ask = ask  # type: ignore[method-assign]
    assert [(reading.device, reading.value) for reading in bench.gpus.read()] == [(FIRST, 5.0)]
    assert bench.gpus.missing() == {}


def test_what_is_no_number_is_left_out_and_in_the_end_missing() -> None:
    bench = Bench()
    bench.question.answer = float("nan")
    assert bench.after(1) == []
    assert bench.gpus.missing() == {}, "the first answer of a rate holds nothing"
    assert [bench.after(1) for _ in range(3)] == [[]] * 3
    assert bench.gpus.missing() == {"power": "the driver answers, but leaves this out"}
    bench.question.answer = 4.0
    assert bench.after(1) == [4.0]
    assert bench.gpus.missing() == {}


def test_closing_twice_closes_once_and_for_good() -> None:
    bench = Bench()
    bench.after(1)
    bench.gpus.close()
    bench.gpus.close()
    assert bench.replay.closed == 1
    assert bench.after(1000) == []
    assert bench.replay.opened == 1
