"""Tests of stacks that are sampled in a worker and collected in the training process.

`open` with a counter behaves as `open`.
"""

import builtins
import copy
import io
import json
import os
import pickle
import sys
import tempfile
from pathlib import Path
from types import BuiltinFunctionType

import pytest
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from tb_bottleneck.bottlenecks.input.stages import sampled_work, stages_of
from tb_bottleneck.monitor.workers.loader_stacks import PREFIX, LoaderStacks, remove_left_folders
from tb_bottleneck.monitor.workers.stack_sampler import (
    MAX_STACKS,
    OPENS,
    WAITS,
    CountedOpen,
    SampledWorkerInit,
    StackSampler,
    count_opens,
    uncounted,
)


@pytest.fixture
def counted(monkeypatch):
    """`open` is replaced for this test."""
    monkeypatch.setattr(builtins, "open", builtins.open)
    monkeypatch.setattr(io, "open", io.open)
    return count_opens()


def test_it_counts_and_opens(counted, tmp_path):
    with open(tmp_path / "a", "w", encoding="utf-8") as file:
        file.write("text")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "text"
    assert counted.calls == 2
    with uncounted(open)(tmp_path / "a", encoding="utf-8") as file:
        assert file.read() == "text"
    assert counted.calls == 2
    with pytest.raises(FileNotFoundError):
        open(tmp_path / "missing", encoding="utf-8").close()
    assert counted.calls == 3


def test_it_is_no_method_and_can_be_pickled(counted, tmp_path):
    class Data:
        opener = open

    (tmp_path / "a").touch()
    Data().opener(tmp_path / "a").close()
    assert (open.__name__, open.__doc__) == ("open", counted.original.__doc__)
    assert pickle.loads(pickle.dumps(open)) is open
    assert copy.deepcopy(open) is open


def test_the_worker_of_a_worker_counts_for_itself(counted, tmp_path):
    (tmp_path / "a").touch()
    open(tmp_path / "a").close()
    again = count_opens()
    assert (again.calls, again.original) == (0, counted.original)


def test_an_open_that_the_program_replaced_stays(monkeypatch):
    own = lambda *args: None  # noqa: E731
    monkeypatch.setattr(builtins, "open", own)
    assert count_opens() is None
    assert open is own


def test_the_time_to_open_a_file_is_reading(tmp_path):
    """The sampler writes the counter's frame as the profiler writes that of `open`."""
    sampler = StackSampler(str(tmp_path))
    look = CountedOpen(lambda: sampler._stack(sys._getframe().f_back))
    scope = {}
    exec(compile("def fetch(look):\n    return look()", "torch/utils/data/_utils/fetch.py", "exec"), scope)
    stack = scope["fetch"](look)
    assert stack.endswith(OPENS)
    [stage] = stages_of([(stack.split(";"), 1.0)])
    assert stage.stage == "read"


class Blur:
    def __call__(self, look):
        look()
        return 0


class Samples(Dataset):
    def __init__(self, look=lambda: None):
        self.look, self.transform = look, Blur()

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(self.look)


def user_init(worker):
    user_init.seen = worker


def sampler_in(folder):
    """A sampler whose clock advances by a millisecond per look."""
    times = iter(range(0, 10**12, 1_000_000))
    return StackSampler(str(folder), lambda: next(times))


def test_a_look_inside_of_fetch_adds_the_time_to_its_stack(tmp_path):
    sampler = sampler_in(tmp_path)
    looks = Samples(lambda: sampler.look(sys._getframe()))
    _MapDatasetFetcher(looks, False, int, False).fetch(0)
    sampler.look(sys._getframe())  # no batch is made here
    sampler.write()
    stacks = LoaderStacks()
    stacks._folder = str(tmp_path)
    fact = stacks.facts()["loader_stacks"]
    ((stack, ns),) = fact["stacks"]
    names = [frame.rpartition(": ")[2] for frame in stack.split(";")]
    assert names[0].endswith("fetch")
    assert "test_stack_sampler.py(" in stack
    if sys.version_info >= (3, 11):
        assert names[1:3] == ["Samples.__getitem__", "Blur.__call__"]
    assert (ns, fact["waiting_ns"], fact["processes"]) == (1_000_000, 1_000_000, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_wait_for_storage_and_many_stacks(tmp_path):
    sampler = sampler_in(tmp_path)
    _MapDatasetFetcher(Samples(lambda: sampler.look(sys._getframe(), waits=True)), False, int, False).fetch(0)
    (stack,) = sampler._stacks
    assert stack.endswith(WAITS)
    sampler._stacks.update({str(number): 1 for number in range(MAX_STACKS)})
    _MapDatasetFetcher(Samples(lambda: sampler.look(sys._getframe())), False, int, False).fetch(0)
    assert sampler._other_ns == 1_000_000


def test_nothing_is_raised_without_the_folder(tmp_path):
    sampler = sampler_in(tmp_path / "gone")
    sampler.write()
    sampler._run()  # ends at once
    assert not sampler._folder


def test_the_users_function_is_called_and_stays(monkeypatch):
    monkeypatch.setattr(builtins, "open", open)  # this process is no worker, and keeps its own
    monkeypatch.setattr(io, "open", open)
    loader = DataLoader(Samples(), num_workers=1, worker_init_fn=user_init)
    stacks = LoaderStacks()
    restore = stacks.attach(loader)
    begins = pickle.loads(pickle.dumps(loader.worker_init_fn))  # as for a spawned worker
    assert isinstance(begins, SampledWorkerInit)
    begins.folder = "gone"
    begins(3)
    assert user_init.seen == 3
    restore()
    assert loader.worker_init_fn is user_init
    stacks.close()
    assert stacks.attach(DataLoader(Samples())) is None, "no workers"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(("runs", "batches"), [(True, 6), (False, 12)])
def test_batches_are_counted_for_the_time_that_was_sampled(tmp_path, monkeypatch, runs, batches):
    """A worker wrote after 10 s; 10 s later, while it still runs, the training has twice as many batches."""
    process = os.getpid() if runs else 2**22 + 1
    for number in range(10):
        totals = {"process": process, "stacks": {"a": 10**9}, "began_ns": 0, "until_ns": 10**9 * (number + 1)}
        (tmp_path / f"{number}.json").write_text(json.dumps(totals))
    monkeypatch.setattr("time.perf_counter_ns", lambda: 2 * 10**10)
    stacks = LoaderStacks()
    stacks._folder, stacks.batches = str(tmp_path), 12
    assert stacks.facts()["loader_stacks"]["batches"] == batches


@pytest.mark.skipif(sys.platform != "linux", reason="fork")
def test_a_forked_worker_is_sampled():
    loader = DataLoader(Samples(_slow), num_workers=1, multiprocessing_context="fork", worker_init_fn=_failing_later)
    stacks = LoaderStacks()
    restore = stacks.attach(loader)
    iterator = iter(loader)
    restore()
    assert len(list(iterator)) == 4
    del iterator
    fact = stacks.facts()["loader_stacks"]
    stacks.close()
    assert any("_slow" in stack for stack, _ in fact["stacks"])
    assert fact["core_ns"] < sum(ns for _, ns in fact["stacks"]) / 2, "_slow sleeps"


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_files_that_a_worker_opens_are_counted(start):
    """Two files per sample, by `open` and by pathlib; those of the sampler itself do not count."""
    if sys.platform != "linux" and start == "fork":
        pytest.skip("fork")
    loader = DataLoader(Samples(_open_two), batch_size=2, num_workers=1, multiprocessing_context=start)
    stacks = LoaderStacks()
    restore = stacks.attach(loader)
    iterator = iter(loader)
    restore()
    assert len(list(iterator)) == 2
    del iterator
    fact = stacks.facts()["loader_stacks"]
    stacks.batches = 2
    work = sampled_work(stacks.facts())
    stacks.close()
    assert fact["opens"] == 8
    assert work.opens / work.batches == 4
    assert isinstance(open, BuiltinFunctionType), "only workers count"


def _open_two():
    with open(__file__, "rb"):
        Path(__file__).read_bytes()
    _slow()


def _slow():
    import time

    time.sleep(0.08)


def _failing_later(worker):
    assert worker == 0


def test_folders_of_killed_trainings_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    dead, alive, recent = (tmp_path / f"{PREFIX}{process}_x" for process in (2**22 + 1, os.getpid(), 2**22 + 2))
    for folder in (dead, alive, recent):
        folder.mkdir()
    for folder in (dead, alive):
        os.utime(folder, (1e9, 1e9))
    remove_left_folders()
    assert sorted(tmp_path.iterdir()) == sorted([alive, recent])
