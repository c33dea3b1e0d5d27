"""The GPU sampler recovers from driver errors: a failed query pauses with a reason, and is tried again later."""

from monitor.samplers.replay import Replay

from tb_bottleneck.monitor.nvml.queries import queries
from tb_bottleneck.monitor.samplers.gpu_driver import DriverError, GpuDevice, UnknownGpus
from tb_bottleneck.monitor.samplers.gpu_sampler import REFRESH_GPUS_S, RETRY_S, GpuSampler

FIRST, SECOND = "GPU-11111111-1111-1111-1111-111111111111", "GPU-22222222-2222-2222-2222-222222222222"


class FakeQuery:
    """A query with results set by the test."""

    signals = ("power",)
    every_s = 1.0

    def __init__(self) -> None:
        self.answer: float | DriverError = 1.0
        self.times = 0

    def read(self, driver: Replay, gpu: GpuDevice) -> dict[str, float]:
        self.times += 1
        if isinstance(self.answer, DriverError):
            raise self.answer
        return {"power": self.answer}


class Fixture:
    """A sampler of the first GPU with one query, and a manual clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.replay, self.query = Replay("h200.json"), FakeQuery()
        self.ours = 1
        self.gpus = GpuSampler(self.replay, [self.query], self.choose, lambda: self.now)

    def choose(self, gpus: list[GpuDevice]) -> list[GpuDevice]:
        if not self.ours:
            raise UnknownGpus("not begun")
        return gpus[: self.ours]

    def after(self, seconds: float) -> list[float]:
        self.now += seconds
        return [reading.value for reading in self.gpus.read()]


def test_a_permanently_refused_query_runs_once() -> None:
    fixture = Fixture()
    fixture.query.answer = DriverError("not on this GPU", lasting=True)
    assert [fixture.after(1) for _ in range(200)] == [[]] * 200
    assert fixture.query.times == 1
    assert fixture.gpus.missing() == {"power": "not on this GPU"}


def test_a_passing_refusal_is_tried_again_after_a_while() -> None:
    fixture = Fixture()
    fixture.query.answer = DriverError("busy")
    fixture.after(1)
    fixture.query.answer = 2.0
    assert [fixture.after(1) for _ in range(int(RETRY_S) - 1)] == [[]] * (int(RETRY_S) - 1)
    assert fixture.after(1) == [2.0]
    assert fixture.gpus.missing() == {}


def test_a_lost_gpu_closes_the_driver_and_opens_it_anew_later() -> None:
    fixture = Fixture()
    assert fixture.after(1) == [1.0]
    fixture.query.answer = DriverError("the driver has lost the GPU", lost=True)
    assert fixture.after(1) == []
    assert (fixture.replay.opened, fixture.replay.closed) == (1, 1)
    assert fixture.gpus.missing() == {"power": "the driver has lost the GPU"}
    fixture.query.answer = 3.0
    assert fixture.after(RETRY_S / 2) == []
    assert fixture.replay.opened == 1, "a driver that is being reset is left in peace"
    assert fixture.after(RETRY_S / 2) == [3.0]


def test_after_a_loss_no_other_question_is_put() -> None:
    replay = Replay("h200.json")
    gpus = GpuSampler(replay, queries(), lambda gpus: gpus[:1], lambda: 0.0)
    list(gpus.missing())
    replay.broken = DriverError("gone", lost=True)
    assert list(gpus.read()) == []
    assert len(replay.asked) == 1


def test_without_a_driver_all_is_missing_and_it_is_never_looked_for_again() -> None:
    fixture = Fixture()
    fixture.replay.broken = DriverError("no driver", lasting=True)
    assert [fixture.after(RETRY_S) for _ in range(5)] == [[]] * 5
    assert fixture.replay.opened == 1
    assert fixture.gpus.missing() == {"power": "no driver"}


def test_a_gpu_that_is_taken_later_joins_in() -> None:
    fixture = Fixture()
    fixture.ours = 0
    assert fixture.after(1) == []
    assert fixture.gpus.missing() == {"power": "not begun"}
    fixture.ours = 1
    assert fixture.after(1) == [1.0]
    fixture.ours = 2
    assert fixture.after(REFRESH_GPUS_S) == [1.0, 1.0]


def test_a_signal_that_one_gpu_gives_is_not_missing() -> None:
    fixture = Fixture()
    fixture.ours = 2

    def read(driver: Replay, gpu: GpuDevice) -> dict[str, float]:
        if gpu.uuid == SECOND:
            raise DriverError("not on this one", lasting=True)
        return {"power": 5.0}

    fixture.query.read = read  # type: ignore[method-assign]
    assert [(reading.device, reading.value) for reading in fixture.gpus.read()] == [(FIRST, 5.0)]
    assert fixture.gpus.missing() == {}


def test_what_is_no_number_is_left_out_and_in_the_end_missing() -> None:
    fixture = Fixture()
    fixture.query.answer = float("nan")
    assert fixture.after(1) == []
    assert fixture.gpus.missing() == {}, "the first answer of a rate holds nothing"
    assert [fixture.after(1) for _ in range(3)] == [[]] * 3
    assert fixture.gpus.missing() == {"power": "the driver's results do not contain it"}
    fixture.query.answer = 4.0
    assert fixture.after(1) == [4.0]
    assert fixture.gpus.missing() == {}


def test_closing_twice_closes_once_and_for_good() -> None:
    fixture = Fixture()
    fixture.after(1)
    fixture.gpus.close()
    fixture.gpus.close()
    assert fixture.replay.closed == 1
    assert fixture.after(1000) == []
    assert fixture.replay.opened == 1
