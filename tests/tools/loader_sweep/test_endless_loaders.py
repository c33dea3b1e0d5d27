"""Tests of the user's function and of the endless loaders of a sweep made from its result.

Errors in the function's name or code are reported in one line. The loaders share one stream, and keep the configuration
of the user's own loader.
"""

import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from monitor.datasets import Breaks, Counts, Stream

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.tools.loader_sweep.endless_loaders import (
    LoaderSetting,
    SweepLoaders,
    call_factory,
    one_line,
    sweep_loaders,
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary current directory; modules imported from it are removed afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_by_module_from_the_current_directory(here: Path) -> None:
    write(here / "shop/__init__.py", "")
    write(here / "shop/data.py", "def make(): return 41\n")
    assert call_factory("shop.data:make") == 41


def test_by_file_in_any_directory(here: Path) -> None:
    write(here / "deep/training_data.py", "from beside import answer\ndef make(): return answer\n")
    write(here / "deep/beside.py", "answer = 42\n")
    assert call_factory("deep/training_data.py:make") == 42


def test_for_a_file_without_that_function_its_functions_are_listed(here: Path) -> None:
    write(here / "some_data.py", "from os.path import join\ndef make_train(): ...\ndef make_test(): ...\n")
    with pytest.raises(NotFound, match=r"no function 'make'; it has make_train, make_test$"):
        call_factory("some_data.py:make")


@pytest.mark.parametrize("factory", ["some_data", "some_data:", ":make", "make.py"])
def test_for_a_name_without_a_function_the_form_is_given(here: Path, factory: str) -> None:
    with pytest.raises(NotFound, match="module:function"):
        call_factory(factory)


def test_a_file_that_is_not_there(here: Path) -> None:
    with pytest.raises(NotFound, match=r"no such file: nowhere\.py"):
        call_factory("nowhere.py:make")


def test_a_module_that_is_not_there(here: Path) -> None:
    with pytest.raises(NotFound, match="no module named 'nowhere' in"):
        call_factory("nowhere.data:make")


def test_a_module_that_lacks_one_of_its_own_is_not_taken_for_absent(here: Path) -> None:
    write(here / "needs_more.py", "import surely_not_installed\n")
    with pytest.raises(Unusable, match=r"importing needs_more raised ModuleNotFoundError.*surely_not_installed"):
        call_factory("needs_more:make")


def test_a_file_named_as_a_module_that_is_loaded(here: Path) -> None:
    write(here / "json.py", "def make(): ...\n")
    with pytest.raises(NotFound, match="rename the file"):
        call_factory("json.py:make")


def test_a_function_that_raises(here: Path) -> None:
    write(here / "failing_data.py", "def make(): raise KeyError('no such split')\n")
    with pytest.raises(Unusable, match=r"failing_data.py:make\(\) raised KeyError: 'no such split'"):
        call_factory("failing_data.py:make")


def test_an_exception_in_one_line() -> None:
    assert one_line(ValueError()) == "ValueError"
    assert one_line(ValueError("a\n\nb\n")) == "ValueError: b"
    assert (
        one_line(ValueError("Caught ValueError in DataLoader worker process 0.\nValueError: bad")) == "ValueError: bad"
    )
    assert one_line(ValueError("red \x1b[31m")) == "ValueError: red [31m"
    assert len(one_line(ValueError("x" * 10_000))) < 400


torch = pytest.importorskip("torch")


ALONE = LoaderSetting(0, False, 0)


def first(feed: SweepLoaders, count: int, setting: LoaderSetting = ALONE) -> list[list[int]]:
    return [torch.as_tensor(batch).reshape(-1).tolist() for batch in islice(feed.loader(setting), count)]


def test_a_stream_never_ends_and_the_next_loader_reads_on() -> None:
    feed = SweepLoaders({"dataset": Counts(), "batch_size": 3}, torch)
    assert first(feed, 4) == [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2]]
    assert first(feed, 2) == [[3, 4, 5], [6]]


def test_samples_are_counted_batch_by_batch() -> None:
    feed = SweepLoaders({"dataset": Counts(), "batch_size": 3}, torch)
    assert [feed.samples_in(batch) for batch in islice(feed.loader(ALONE), 4)] == [3, 3, 1, 3]


def test_without_batches_each_sample_comes_alone() -> None:
    feed = SweepLoaders({"dataset": Counts(), "batch_size": None}, torch)
    assert first(feed, 9) == [[n % 7] for n in range(9)]


def test_shuffling_and_dropping_are_the_users() -> None:
    feed = SweepLoaders({"dataset": Counts(), "batch_size": 3, "drop_last": True, "shuffle": True}, torch)
    batches = first(feed, 4)
    assert [len(batch) for batch in batches] == [3] * 4
    assert len({*batches[0], *batches[1]}) == 6


def test_a_loader_is_taken_over_with_its_parts() -> None:
    def collate(samples: list[int]) -> list[int]:
        return [sample * 10 for sample in samples]

    loader = torch.utils.data.DataLoader(Counts(), batch_size=4, collate_fn=collate, num_workers=1, prefetch_factor=5)
    feed = SweepLoaders(loader, torch)
    assert feed.given == LoaderSetting(1, False, 5)
    assert first(feed, 2) == [[0, 10, 20, 30], [40, 50, 60]]


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_loader_over_what_is_iterated(batch_size: int | None) -> None:
    feed = SweepLoaders(torch.utils.data.DataLoader(Stream(), batch_size=batch_size), torch)
    assert len(first(feed, 100)) == (5 if batch_size is None else 3)


def test_a_loader_whose_samples_come_alone() -> None:
    feed = SweepLoaders(torch.utils.data.DataLoader(Counts(), batch_size=None), torch)
    assert first(feed, 8) == [[n % 7] for n in range(8)]


def test_what_the_sweep_varies_is_not_the_users_any_more() -> None:
    given = {"dataset": Counts(), "num_workers": 2, "persistent_workers": True, "pin_memory": True, "timeout": 5}
    feed = SweepLoaders(given, torch)
    assert feed.given == LoaderSetting(2, True, 2)
    assert first(feed, 1) == [[0]]
    assert given["num_workers"] == 2, "the user's own arguments stay as they are"


@pytest.mark.parametrize("given", [5, {"batch_size": 3}, {"dataset": Counts(), "no_such": 1}])
def test_what_no_loader_can_be_made_of(given: object) -> None:
    with pytest.raises(Unusable):
        SweepLoaders(given, torch)


def test_a_batch_is_taken_to_the_device_part_by_part() -> None:
    sent: list[tuple[str, bool]] = []

    class Tensor:
        def to(self, device: str, non_blocking: bool) -> None:
            sent.append((device, non_blocking))

    class Torch:
        utils = torch.utils

    pretended = Torch()
    pretended.Tensor = Tensor
    pretended.cuda = SimpleNamespace(synchronize=lambda: sent.append(("waited", True)))
    feed = SweepLoaders(Breaks(), pretended, "cuda")
    feed.take({"image": Tensor(), "more": (Tensor(), ["name", Tensor()])}, True)
    assert sent == [("cuda", True)] * 3 + [("waited", True)]


def test_on_a_machine_without_a_gpu_nothing_is_sent() -> None:
    feed = sweep_loaders(Counts())
    if feed.device is None:
        feed.take([torch.zeros(1)], True)
