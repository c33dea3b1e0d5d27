"""`open` with a counter behaves as `open`."""

import builtins
import copy
import io
import pickle
import sys

import pytest

from tb_bottleneck.measures.input_stages import stages_of
from tb_bottleneck.monitor.workers.stack_sampler import OPENS, CountedOpen, StackSampler, count_opens, uncounted


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
