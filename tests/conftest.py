"""Fixtures of every test: no thread or process remains after a test, and the user's own cache is not used."""

import gc
import os
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import hypothesis
import pytest

TASKS = "/proc/self/task"
SECONDS_TO_END = 20.0  # longest wait, for a busy machine; the wait ends as soon as nothing remains

# No deadline: on a busy machine an example takes longer, and such a failure shows no defect.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


NIGHTLY = Path(__file__).with_name("nightly.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases of nightly.txt, before pytest leaves the nightly ones out."""
    lines = [line.split() for line in NIGHTLY.read_text().splitlines() if line and not line.startswith("#")]
    parts: dict[str, list[str]] = {}
    for test, *parameters in lines:
        parts.setdefault(test, []).append("".join(parameters))
    for item in items:
        name = item.nodeid.rpartition("/")[2]
        if any(part in name for part in parts.get(name.partition("[")[0], ())):
            item.add_marker("nightly")


def pytest_collection_finish() -> None:
    """Takes the modules and the tests out of garbage collection: with torch imported, each search takes seconds."""
    gc.collect()
    gc.freeze()


def child_processes() -> set[str]:
    """Returns "PID COMMAND" of each child process, except multiprocessing's tracker, which remains by design."""
    commands = ((pid, _first_line(f"/proc/{pid}/cmdline").replace("\0", " ")) for pid in _child_pids())
    return {f"{pid} {words}" for pid, words in commands if words and "multiprocessing.resource_tracker" not in words}


def _child_pids() -> Iterator[str]:
    # Not with pathlib, which takes ten times as long: this runs twice for each test.
    for thread in os.listdir(TASKS) if os.path.isdir(TASKS) else ():
        yield from _first_line(f"{TASKS}/{thread}/children").split()


def _first_line(path: str) -> str:
    """Returns a file's first line; empty if its thread or process has ended."""
    try:
        with open(path, errors="replace") as file:
            return file.readline()
    except OSError:
        return ""


@pytest.fixture(autouse=True, scope="session")
def no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sets a scratch cache directory for fixtures that outlive a test, such as servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TB_BOTTLENECK_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("TB_BOTTLENECK_QUIET", "1")  # each monitor would start a diagnosis
        yield


@pytest.fixture(scope="session")
def cache_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields paths that do not exist yet. `mktemp` would list the directories of all earlier tests each time."""
    parent = tmp_path_factory.mktemp("caches")
    return (parent / str(number) for number in count())


@pytest.fixture(autouse=True)
def cache_directory(cache_directories: Iterator[Path]) -> Iterator[Path]:
    """Gives each test its own cache, outside of its tmp_path, which many tests use as a logdir."""
    directory = next(cache_directories)
    directory.mkdir()
    with pytest.MonkeyPatch.context() as patch:  # not the test's own, which must end before its tmp_path does
        patch.setenv("TB_BOTTLENECK_CACHE", str(directory))
        yield directory


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Fails a test if more threads or child processes exist after it than before it."""
    threads, children = set(threading.enumerate()), child_processes()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(
            SECONDS_TO_END
        )  # the feeder thread of a queue, e.g. of torch's workers, ends shortly after the queue
    assert not {thread.name for thread in set(threading.enumerate()) - threads}, "this test left threads"
    give_up = time.monotonic() + SECONDS_TO_END
    while child_processes() - children and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not child_processes() - children, "this test left processes"
