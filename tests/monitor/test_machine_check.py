"""The machine check in a training: all ranks measure together or none does, and the training does not change."""

import gzip
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tb_bottleneck import Monitor
from tb_bottleneck.monitor.machine_check import FIRST_STEP, MachineCheck, _turns, measured

PROGRAM = """
import os, sys, torch, torch.distributed as dist
from tb_bottleneck import Monitor
from tb_bottleneck.monitor import machine_check

machine_check.SECONDS, machine_check.AGREE_SECONDS = 0.5, 1.0
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Monitor(sys.argv[1], check_machine=os.environ["RANK"] in sys.argv[2].split(",")):
    for step in range(60):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 16)).square().mean()
        loss.backward()
        optimizer.step()
print(loss.item())
"""


def trained(logdir: Path, ranks: str) -> tuple[list[str], list[dict[str, float]]]:
    """Trains with two ranks, of which `ranks` shall measure. Returns their losses and the figures in their traces."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(logdir), ranks],
            env=shared | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(2)
    ]
    losses = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    traces = sorted(logdir.rglob("*.pt.trace.json.gz"), key=lambda path: path.name)
    found = [json.loads(gzip.decompress(path.read_bytes())) for path in traces]
    assert all(each["tb_bottleneck_late"]["context"]["host_collectives"] for each in found)
    contexts = [each["tb_bottleneck"]["context"] for each in found]
    return losses, [context.get("machine_figures", {}) for context in contexts]


def test_the_ranks_of_a_job_measure_together_or_alone(tmp_path: Path) -> None:
    (losses, together), (others, one) = (trained(tmp_path / ranks, ranks) for ranks in ("0,1", "0"))
    assert losses == others, "random numbers and gradients are those of the training"
    assert all({"product", "core", "link"} <= each.keys() for each in together)
    assert [sorted(each) for each in one] == [["core", "core_cpu", "host_memory", "product"], []]


def test_a_check_is_made_once_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_bottleneck.monitor.machine_check.measured", lambda: {"core": 1.0})
    check = MachineCheck(at_start=True)
    assert [check.is_due(steps) for steps in (FIRST_STEP - 1, FIRST_STEP)] == [False, True]
    check.run()
    assert check.figures == {"core": 1.0}
    assert not check.is_due(100)
    check.request(50)
    assert [check.is_due(steps) for steps in (49, 51)] == [False, True]


def test_the_state_of_torch_stays_as_it_is() -> None:
    threads, random = torch.get_num_threads(), torch.random.get_rng_state()
    assert all(value > 0 for value in measured(seconds=0.1).values())
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), random)


@pytest.mark.parametrize(
    ("machines", "turns"),
    [
        ([("a", {0, 1}, 2)] * 4, [0, 1, 2, 3]),
        ([("a", {0, 1, 2}, 3)] * 4, [0, 0, 1, 1]),
        ([("a", {0, 1}, 2), ("b", {0, 1}, 2)] * 2, [0, 0, 1, 1]),
        ([("a", {0}, 1), ("a", {1}, 1), ("a", {1}, 1)], [0, 0, 1]),
        ([("a", set(range(64)), 64)] * 8, [0] * 8),
        ([("a", set(range(64)), 1.5)] * 3, [0, 1, 2]),
    ],
    ids=["shared cores", "two at a time", "two hosts", "own cores", "many cores", "a quota"],
)
def test_ranks_that_share_cores_measure_one_after_another(
    machines: list[tuple[str, set[int], float]], turns: list[int]
) -> None:
    class Job:
        @staticmethod
        def get_world_size() -> int:
            return len(machines)

        @staticmethod
        def all_gather_object(target: list[object], own: object, group: object) -> None:
            target[:] = machines

    assert _turns(Job, None) == turns


def test_the_check_belongs_to_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow() -> dict[str, float]:
        import time

        time.sleep(0.5)
        return {"core": 1.0}

    monkeypatch.setattr("tb_bottleneck.monitor.machine_check.measured", slow)
    walls = []
    with Monitor(tmp_path, check_machine=True, captures=0) as monitor:
        session = monitor._session
        assert session is not None
        ended = session.clock._ended
        session.clock._ended = lambda row: (walls.append(row.wall_ns), ended(row))
        for _ in range(5):
            monitor.step()
    assert session._facts.machine == {"core": 1.0}
    assert max(walls[1:]) < 0.4e9
