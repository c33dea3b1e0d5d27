"""Loader workers are distinguished from other children, and their cores are added up although they start and end."""

import pytest
from monitor.machine import Machine, values

from tb_bottleneck.monitor.samplers.loader_workers import Workers
from tb_bottleneck.monitor.samplers.processes import Descendant

US = 1
FORKED = ("python", "train.py")
SPAWNED = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)")
SERVER = ("python", "-c", "from multiprocessing.forkserver import main; main(5, 6, ['__main__'])")
TRACKER = ("python", "-c", "from multiprocessing.resource_tracker import main;main(4)")
COMPILER = ("python", "torch/_inductor/compile_worker/__main__.py", "--workers=2")


class Children:
    """Processes under process 1, which runs train.py."""

    def __init__(self) -> None:
        self.there: dict[int, Descendant] = {}
        self.commands: dict[int, tuple[str, ...]] = {US: FORKED}

    def set(self, pid: int, cpu_s: float, command: tuple[str, ...] = FORKED, parent: int = US, name: str = "p") -> None:
        self.there[pid] = Descendant(pid, parent, float(pid), name, cpu_s)
        self.commands[pid] = command

    def descendants(self) -> list[Descendant]:
        return list(self.there.values())

    def command(self, pid: int) -> tuple[str, ...]:
        return self.commands[pid]


@pytest.fixture
def children() -> Children:
    return Children()


@pytest.fixture
def workers(children: Children, machine: Machine) -> Workers:
    return Workers(children, US, machine.clock, machine.root)


def test_cores_of_workers_that_come_and_go(children: Children, workers: Workers, machine: Machine) -> None:
    """
    worker 2   ####....
    worker 3   ########
    worker 4       ####
    """
    children.set(2, 10.0)
    children.set(3, 20.0)
    assert values(workers) == {"worker_count": 2}, "what was used before is not of now"
    machine.now += 2.0
    children.set(2, 12.0)
    children.set(3, 21.0)
    assert values(workers) == {"worker_count": 2, "worker_cores": 1.5}
    machine.now += 2.0
    del children.there[2]
    children.set(3, 23.0)
    children.set(4, 1.0)
    assert values(workers) == {"worker_count": 2, "worker_cores": 1.5}
    machine.now += 2.0
    children.there.clear()
    assert values(workers) == {"worker_count": 0, "worker_cores": 0.0}


@pytest.mark.parametrize(("command", "parent"), [(FORKED, US), (SPAWNED, US), (SERVER, 9)])
def test_what_multiprocessing_makes_is_a_worker(
    children: Children, workers: Workers, command: tuple[str, ...], parent: int
) -> None:
    children.set(2, 0.0, command, parent)
    assert values(workers)["worker_count"] == 1


def test_a_worker_that_torch_named_is_one_whatever_its_command(children: Children, workers: Workers) -> None:
    children.set(2, 0.0, (), name="pt_data_worker")
    assert values(workers)["worker_count"] == 1


@pytest.mark.parametrize("command", [SERVER, TRACKER, COMPILER, ("nvidia-smi",), ()])
def test_other_children_are_none(children: Children, workers: Workers, command: tuple[str, ...]) -> None:
    children.set(2, 0.0, command)
    assert values(workers)["worker_count"] == 0


def test_a_fork_that_becomes_another_program_is_none_any_more(children: Children, workers: Workers) -> None:
    children.set(2, 0.0, FORKED, name="python")
    assert values(workers)["worker_count"] == 1
    children.set(2, 0.0, ("du", "-s"), name="du")
    assert values(workers)["worker_count"] == 0


def test_a_worker_that_is_just_starting_is_looked_at_again(children: Children, workers: Workers) -> None:
    """Between fork and exec a process has no command line; once, such a worker was permanently ignored."""
    children.set(2, 0.0, ())
    assert values(workers)["worker_count"] == 0
    children.set(2, 0.0, SPAWNED)
    assert values(workers)["worker_count"] == 1


def test_a_new_process_under_an_old_id_is_another(children: Children, workers: Workers, machine: Machine) -> None:
    children.set(2, 50.0)
    values(workers)
    machine.now += 1.0
    children.there[2] = Descendant(2, US, 77.0, "p", 0.5)
    assert values(workers)["worker_cores"] == 0.5


def test_a_real_loaders_workers_are_seen_at_work() -> None:
    torch = pytest.importorskip("torch")
    from monitor.samplers.busy import Busy

    workers = Workers()
    loader = torch.utils.data.DataLoader(Busy(), num_workers=2, multiprocessing_context="fork")
    counts, cores = [], []
    for batch in loader:
        assert batch.shape == (1,)
        found = values(workers)
        counts.append(found["worker_count"])
        cores.append(found.get("worker_cores", 0.0))
    assert max(counts) == 2
    assert max(cores) > 0.1


def test_waits_and_reads_of_workers_are_rates_over_all_of_them(
    children: Children, workers: Workers, machine: Machine
) -> None:
    """A worker that ends between two readings is left out, and one that just began has no rate yet."""
    for pid in (2, 3):
        children.set(pid, 10.0)
        machine.write(f"proc/{pid}/schedstat", "5000000000 1000000000 7\n")
        machine.write(f"proc/{pid}/io", "rchar: 1000\nwchar: 5\n")
    assert "worker_read" not in values(workers)
    machine.now += 2.0
    for pid, waited, read in ((2, 2_000_000_000, 5000), (3, 1_500_000_000, 2000)):
        machine.write(f"proc/{pid}/schedstat", f"6000000000 {waited} 9\n")
        machine.write(f"proc/{pid}/io", f"rchar: {read}\nwchar: 5\n")
    children.set(4, 0.5)
    found = values(workers)
    assert found["worker_core_wait"] == pytest.approx(0.75 * 3 / 2), "the third one is taken to be like the others"
    assert found["worker_read"] == pytest.approx(2500.0 * 3 / 2)


def test_other_systems_say_that_only_linux_tells_what_workers_read(children: Children, machine: Machine) -> None:
    assert Workers(children, US, machine.clock, machine.root).missing().keys() == {
        "worker_core_wait",
        "worker_read",
        "worker_pss",
    }


def test_the_memory_of_workers_is_summed_and_read_seldom(
    children: Children, workers: Workers, machine: Machine
) -> None:
    for pid in (71, 72):
        children.set(pid, 1.0)
        machine.write(f"proc/{pid}/smaps_rollup", f"Pss:  {pid} kB\n")
    assert values(workers)["worker_pss"] == (71 + 72) * 1024
    machine.now += 5
    assert "worker_pss" not in values(workers)
