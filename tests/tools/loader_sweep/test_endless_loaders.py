"""Loaders for a sweep are endless, share one stream, and keep the configuration of the user's own loader."""

from itertools import islice
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from monitor.datasets import Breaks, Counts, Stream  # noqa: E402

from tb_bottleneck.base.errors import Unusable  # noqa: E402
from tb_bottleneck.tools.loader_sweep.endless_loaders import LoaderSetting, SweepLoaders, sweep_loaders  # noqa: E402

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
