"""Tests of the bounded map and of the background scans.

There is one scan at a time, only on request, with a pause after a long one.
"""

import threading
from collections.abc import Iterator, Sequence

import pytest

from tb_bottleneck.plugin.state import run_index
from tb_bottleneck.plugin.state.run_index import LruCache, RunIndex, id_of
from tb_bottleneck.sources.logdir import Listing, RecordingFile, Root
from tests.plugin.tenant import until


def test_the_least_recently_used_entry_is_dropped() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_only_selected_entries_are_kept() -> None:
    cache: LruCache[str, int] = LruCache(9)
    for number, key in enumerate("abc"):
        cache.put(key, number)
    cache.keep({"b"}.__contains__)
    assert [cache.get(key) for key in "abc"] == [None, 1, None]


ONE = RecordingFile("/logs/a/t.json", "a", "t.json", 7, 1)


class Disk:
    """A scan that the test delays and counts."""

    def __init__(self) -> None:
        self.recordings: tuple[RecordingFile, ...] = (ONE,)
        self.scans = 0
        self.free = threading.Event()

    def __call__(self, roots: Sequence[Root]) -> Listing:
        self.scans += 1
        self.free.wait()
        return Listing(self.recordings, ())


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def looked(disk: Disk) -> Iterator[RunIndex]:
    made = RunIndex((Root("/logs"),), disk)
    yield made
    disk.free.set()
    made.close()


def test_without_a_request_nothing_is_scanned(disk: Disk, looked: RunIndex) -> None:
    assert disk.scans == 0


def test_one_scan_at_a_time_for_any_number_of_requests(disk: Disk, looked: RunIndex) -> None:
    assert [looked.latest() for _ in range(9)] == [None] * 9
    assert disk.scans == 1


def test_recordings_are_found_by_their_id(disk: Disk, looked: RunIndex) -> None:
    disk.free.set()
    look = until(looked.latest, lambda look: look is not None)
    assert look.by_id == {id_of(ONE): ONE}


def test_the_next_scan_starts_when_it_is_due_and_not_before(disk: Disk, looked: RunIndex) -> None:
    disk.free.set()
    until(looked.latest, lambda look: look is not None)
    looked.close()
    disk.recordings = ()
    looked.latest()
    assert disk.scans == 1
    looked._due = 0.0
    until(looked.latest, lambda look: look is not None and not look.by_id)
    assert disk.scans == 2


def test_an_equal_scan_keeps_the_recordings(disk: Disk, looked: RunIndex) -> None:
    """What others built from the same tuple stays valid."""
    disk.free.set()
    first = until(looked.latest, lambda look: look is not None)
    looked.close()
    disk.recordings = (RecordingFile("/logs/a/t.json", "a", "t.json", 7, 1),)
    looked._due = 0.0
    second = until(looked.latest, lambda look: look is not first)
    assert second.listing.recordings is first.listing.recordings
    assert second.by_id[id_of(ONE)] is ONE


def test_a_long_scan_is_followed_by_a_long_pause(disk: Disk, looked: RunIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.free.set()
    times = iter([100.0, 100.0, 130.0])  # asked, began, ended
    monkeypatch.setattr(run_index.time, "monotonic", lambda: next(times, 130.0))
    looked.latest()
    looked.close()
    assert looked._due == 130.0 + 30.0 * run_index.PAUSE_FACTOR


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failed_scan_does_not_end_scanning(looked: RunIndex, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(roots: Sequence[Root]) -> Listing:
        raise RuntimeError("a defect")

    with monkeypatch.context() as defect:
        defect.setattr(looked, "_scan", broken)
        assert looked.latest() is None
        looked.close()
    disk.free.set()
    looked._due = 0.0
    until(looked.latest, lambda look: look is not None)


def test_an_id_is_opaque_and_differs_by_place_and_run() -> None:
    moved = RecordingFile("/logs/b/t.json", "a", "t.json", 7, 1)
    renamed = RecordingFile("/logs/a/t.json", "x/a", "t.json", 7, 1)
    changed = RecordingFile("/logs/a/t.json", "a", "t.json", 8, 2)
    assert len({id_of(one) for one in (ONE, moved, renamed)}) == 3
    assert id_of(changed) == id_of(ONE)
    assert "logs" not in id_of(ONE)
