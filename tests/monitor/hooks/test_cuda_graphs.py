"""Steps that are replayed as a CUDA graph. The graph is a class that calls what was captured."""

from collections.abc import Callable, Iterator

import pytest
import torch

from tb_bottleneck.monitor.hooks import cuda_graphs, optimizer
from tb_bottleneck.monitor.session import MonitorOptions, Session
from tb_bottleneck.monitor.steps.row_queue import StepRow


class Graph:
    """Runs the captured work, without hooks of the optimizer."""

    def __init__(self) -> None:
        self.replays = 0

    def capture_begin(self) -> None:
        pass

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        self.replays += 1


@pytest.fixture
def rows(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[StepRow]]:
    """The rows of the steps that end."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    session, found = Session(MonitorOptions(tmp_path)), []
    before = dict(vars(Graph))
    cuda_graphs.install(session._context)
    remove = optimizer.install(session._context)
    session.patches.activate()
    session.clock._ended = found.append
    yield found
    session.patches.restore()
    remove()
    assert dict(vars(Graph)) == before


def captured(work: Callable[[], object]) -> Graph:
    graph = Graph()
    graph.capture_begin()
    work()
    graph.capture_end()
    return graph


def update() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    torch.optim.SGD([weight], lr=0.1).step()


def test_a_graph_with_the_update_makes_steps(rows: list[StepRow]) -> None:
    graph = captured(update)
    before = len(rows)
    for _ in range(20):
        graph.replay()
    assert graph.replays == 20
    assert len(rows) - before in (19, 20), "the first replay may belong to the step of the capture"
    assert all("optimizer" in row.figures for row in rows[before + 1 :])


def test_a_graph_without_an_update_makes_none(rows: list[StepRow]) -> None:
    graph = captured(lambda: torch.ones(2) + 1)
    for _ in range(20):
        graph.replay()
    assert (graph.replays, rows) == (20, [])


def test_an_error_of_a_replay_reaches_the_training(rows: list[StepRow], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = captured(update)
    monkeypatch.setattr(graph, "replays", None)
    with pytest.raises(TypeError):
        graph.replay()
