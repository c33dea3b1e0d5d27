"""What holds for every test: no thread and no process is left behind, and the user's own cache is left alone."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

SECONDS_TO_END = 20.0  # on a busy machine; what ends is not waited for any longer than it takes

# A machine that is busy otherwise takes longer, and a test that failed for that told nothing.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


def child_processes() -> set[str]:
    """The command lines of this process's children, by id; multiprocessing's own tracker lives on by design."""
    children: set[str] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = listing.read_text().split()
        except OSError:
            continue  # the thread has ended meanwhile
        for pid in pids:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if "multiprocessing.resource_tracker" not in words:
                children.add(f"{pid} {words}")
    return children


@pytest.fixture(autouse=True, scope="session")
def no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Also what lives longer than one test, such as a server, keeps its reports in a scratch directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TB_BOTTLENECK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Each test has a cache of its own, outside of its tmp_path, which many tests take for a logdir."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:  # not the test's own, which must end before its tmp_path does
        patch.setenv("TB_BOTTLENECK_CACHE", str(directory))
        yield directory


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Fails a test after which more threads or child processes live than before it."""
    threads, children = set(threading.enumerate()), child_processes()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(SECONDS_TO_END)  # a queue's feeder, of torch's workers say, ends a moment after the queue
    assert not {thread.name for thread in set(threading.enumerate()) - threads}, "this test left threads"
    give_up = time.monotonic() + SECONDS_TO_END
    while child_processes() - children and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not child_processes() - children, "this test left processes"
