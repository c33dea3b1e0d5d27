"""Copies between host and device, and calls that wait for the device. The device is torch's `meta`, without data."""

from collections.abc import Iterator

import pytest
import torch

from tb_bottleneck.monitor.hooks import tensor_transfers
from tb_bottleneck.monitor.session import MonitorOptions, Session
from tb_bottleneck.monitor.steps.row_queue import StepRow


@pytest.fixture
def session(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(tensor_transfers, "on_device", lambda tensor: tensor.is_meta)
    session = Session(MonitorOptions(tmp_path))
    before = dict(vars(torch.Tensor))
    tensor_transfers.install_transfer(session._context)
    tensor_transfers.install_syncs(session._context)
    session.patches.activate()
    yield session
    session.patches.restore()
    assert dict(vars(torch.Tensor)) == before


def figures(session: Session) -> dict[str, float]:
    rows: list[StepRow] = []
    session.clock._ended = rows.append
    session.clock.began = 0
    session.clock.step()
    return rows[0].figures


HOST, DEVICE = torch.ones(3), torch.ones(3, device="meta")


@pytest.mark.parametrize(
    ("call", "moved", "syncs"),
    [
        (lambda: HOST.to("meta"), True, 1),
        (lambda: HOST.to("meta", non_blocking=True), True, 0),
        (lambda: HOST.to("meta", torch.float64, True), True, 0),
        (lambda: HOST.to(DEVICE), True, 1),
        (lambda: torch.nn.Parameter(HOST).to("meta"), True, 1),
        (lambda: HOST.to(torch.float64), False, 0),
        (lambda: HOST.cpu(), False, 0),
        (lambda: DEVICE.to("meta"), False, 0),
        (lambda: HOST.sum().item(), False, 0),
        (lambda: bool(HOST.sum() > 0), False, 0),
        (lambda: torch.cuda.Event.__mro__, False, 0),
    ],
)
def test_moves_and_waits_are_distinguished(session: Session, call, moved: bool, syncs: int) -> None:
    call()
    step = figures(session)
    assert ("transfer" in step) == moved
    assert step["syncs"] == syncs


@pytest.mark.parametrize(
    "call", [lambda: DEVICE.sum().item(), lambda: bool(DEVICE.sum() > 0), lambda: float(DEVICE.sum())]
)
def test_reading_a_value_is_a_wait_also_where_it_fails(session: Session, call) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):  # meta has no values to read
        call()
    assert figures(session)["syncs"] == 1


class Own(torch.Tensor):
    """A subclass that raises on attribute access."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if "__get__" in getattr(func, "__name__", ""):
            raise AssertionError("an attribute was read")
        return super().__torch_function__(func, types, args, kwargs or {})


def test_attributes_of_a_subclass_are_not_read(session: Session) -> None:
    HOST.as_subclass(Own).to(torch.float64)
    assert "transfer" not in figures(session)


def test_attributes_of_a_result_of_a_subclass_are_not_read(session: Session) -> None:
    """`tensor.to(other)` of a plain tensor returns what the class of `other` decides."""
    assert type(HOST.to(HOST.as_subclass(Own))) is Own
    assert "transfer" not in figures(session)
    assert session.guard.is_on("transfer")


def test_a_result_that_fails_disables_the_signal_and_not_the_training(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_tensor: torch.Tensor) -> bool:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(tensor_transfers, "on_device", fails)
    assert HOST.to(torch.float64).dtype == torch.float64
    assert HOST.to(torch.float16).dtype == torch.float16
    assert not session.guard.is_on("transfer")
    assert [note.code for note in session.guard.take_notes()] == ["signal_off"]


def test_results_and_errors_are_torchs_own(session: Session) -> None:
    assert HOST.to(torch.float64).dtype == torch.float64
    assert torch.tensor([2]).item() == 2
    with pytest.raises(RuntimeError, match="a Tensor with 3 elements"):
        HOST.item()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_code_stays_whole(session: Session) -> None:
    import torch._dynamo

    def work(batch: torch.Tensor) -> torch.Tensor:
        return batch.to(torch.float64).cpu().sum()

    assert torch.compile(work, backend="eager", fullgraph=True)(HOST) == 3
