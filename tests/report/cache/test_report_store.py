"""Reports on disk: reused only for the same file and code, limited in size, and without errors for the user."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tb_bottleneck.base import persistence
from tb_bottleneck.report.cache import report_store
from tb_bottleneck.report.cache import report_store as file_identity
from tb_bottleneck.report.cache.report_store import FileIdentity, Store, code_version, identity_of
from tb_bottleneck.schema.bottleneck_pb2 import Health, Report

TRACE = FileIdentity("/logs/a.pt.trace.json", 7, 1)
REPORT = Report(schema=1, source="a.pt.trace.json", health=Health(status="ok"))


def entries(directory):
    return sorted(path.name for path in directory.iterdir())


def test_what_was_put_is_there_for_the_next_process(tmp_path):
    Store(tmp_path / "deep" / "cache", "1").put(TRACE, REPORT)
    assert Store(tmp_path / "deep" / "cache", "1").get(TRACE) == REPORT


@pytest.mark.parametrize(
    ("other", "version"),
    [
        (FileIdentity("/logs/b.pt.trace.json", 7, 1), "1"),
        (FileIdentity("/logs/a.pt.trace.json", 8, 1), "1"),
        (FileIdentity("/logs/a.pt.trace.json", 7, 2), "1"),
        (TRACE, "2"),
    ],
    ids=["path", "size", "time", "code"],
)
def test_a_report_about_another_file_or_by_other_code_is_not_found(tmp_path, other, version):
    Store(tmp_path, "1").put(TRACE, REPORT)
    assert Store(tmp_path, version).get(other) is None


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-1], lambda data: data + b"x", lambda data: b"x" + data[1:]]
)
def test_a_damaged_entry_is_removed(tmp_path, damage):
    store = Store(tmp_path, "1")
    store.put(TRACE, REPORT)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert store.get(TRACE) is None
    assert entries(tmp_path) == []


def test_a_renamed_entry_is_about_another_file(tmp_path):
    store = Store(tmp_path, "1")
    store.put(TRACE, REPORT)
    (entry,) = tmp_path.iterdir()
    other = FileIdentity("/logs/b.pt.trace.json", 7, 1)
    entry.rename(store._entry(other))
    assert store.get(other) is None


@pytest.mark.parametrize("forged", ["pipe", "link", "writable"])
def test_an_entry_that_others_may_have_written_is_not_used(tmp_path, forged):
    """The cache directory may be shared (TB_BOTTLENECK_CACHE)."""
    store = Store(tmp_path / "cache", "1")
    store.put(TRACE, REPORT)
    (entry,) = (tmp_path / "cache").iterdir()
    if forged == "writable":
        entry.chmod(0o666)
    else:
        entry.rename(tmp_path / "elsewhere")
        os.mkfifo(entry) if forged == "pipe" else entry.symlink_to(tmp_path / "elsewhere")
    assert store.get(TRACE) is None
    store.put(TRACE, REPORT)
    assert store.get(TRACE) == REPORT


def test_the_least_recently_used_one_goes_first(tmp_path):
    store = Store(tmp_path, "1", max_bytes=2000)
    traces = [FileIdentity(f"/logs/{number}", 1, 1) for number in range(40)]
    for age, trace in enumerate(traces[:10]):
        store.put(trace, REPORT)
        os.utime(store._entry(trace), (age, age))
    assert store.get(traces[0]) == REPORT  # used just now, though it is the oldest
    for trace in traces[10:]:
        store.put(trace, REPORT)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2000
    assert store.get(traces[-1]) == REPORT
    assert store.get(traces[1]) is None


def test_only_files_of_ours_are_ever_removed(tmp_path):
    """A user may name a directory with other files."""
    for name in ("thesis.tex", "0" * 32, "x.report", "f" * 32 + ".report.bak"):
        (tmp_path / name).write_bytes(b"x" * 5000)
    abandoned, young = (tmp_path / f"{'0' * 32}.report.{name}.tmp" for name in ("old", "young"))
    young.write_bytes(b"")
    abandoned.write_bytes(b"")
    os.utime(abandoned, (0, 0))
    Store(tmp_path, "1", max_bytes=10).put(TRACE, REPORT)
    assert entries(tmp_path) == sorted(["thesis.tex", "0" * 32, "x.report", "f" * 32 + ".report.bak", young.name])


def test_what_others_put_there_neither_counts_nor_keeps_old_entries(tmp_path, monkeypatch):
    store = Store(tmp_path, "1", max_bytes=2000)
    (tmp_path / ("0" * 32 + ".report")).mkdir()
    foreign = tmp_path / ("1" * 32 + ".report")
    foreign.write_bytes(b"x" * 5000)
    theirs, own = foreign.stat().st_ino, persistence.is_own
    monkeypatch.setattr(report_store, "is_own", lambda status: status.st_ino != theirs and own(status))
    traces = [FileIdentity(f"/logs/{number}", 1, 1) for number in range(40)]
    for trace in traces:
        store.put(trace, REPORT)
    assert foreign.exists()
    assert store.get(traces[-1]) == REPORT
    assert store.get(traces[-2]) == REPORT
    assert len(entries(tmp_path)) < 40


def test_a_report_that_is_too_large_is_not_kept(tmp_path):
    store = Store(tmp_path, "1")
    store.put(TRACE, Report(source="x" * report_store.MAX_REPORT_BYTES))
    assert entries(tmp_path) == []


@pytest.mark.parametrize("obstacle", ["a file", "a directory that takes nothing"])
def test_a_directory_that_cannot_be_written_is_no_error(tmp_path, monkeypatch, obstacle):
    place = tmp_path / "cache"
    if obstacle == "a file":
        place.write_text("")
    else:
        place.mkdir()

        def refuse(*arguments: object, **options: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("os.open", refuse)
    store = Store(place, "1")
    store.put(TRACE, REPORT)
    assert store.get(TRACE) is None


def test_a_write_that_breaks_off_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    Store(tmp_path, "1").put(TRACE, REPORT)
    assert entries(tmp_path) == []


def test_the_environment_moves_the_cache_or_turns_it_off(tmp_path):
    assert Store.from_environment({"TB_BOTTLENECK_CACHE": "off"}) is None
    assert Store.from_environment({"TB_BOTTLENECK_CACHE": "relative/place"}) is None
    moved = Store.from_environment({"TB_BOTTLENECK_CACHE": str(tmp_path / "here")})
    assert moved is not None
    moved.put(TRACE, REPORT)
    assert len(entries(tmp_path / "here")) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is Linux's")
def test_by_default_it_is_in_the_cache_directory_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    usual = Store.from_environment({})
    assert usual is not None
    usual.put(TRACE, REPORT)
    assert entries(tmp_path) == ["tb_bottleneck"]


MANY = """
import sys
from pathlib import Path
from tb_bottleneck.report.cache.report_store import FileIdentity
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.schema.bottleneck_pb2 import Report
store = Store(Path(sys.argv[1]), "1", max_bytes=20_000)
for turn in range(300):
    trace = FileIdentity(f"/logs/{turn % 40}", 1, 1)
    found = store.get(trace)
    assert found is None or found.source == f"{turn % 40}" * 200, found
    store.put(trace, Report(source=f"{turn % 40}" * 200))
"""


def test_several_processes_share_one_directory(tmp_path):
    """Each process replaces, reads and removes the entries of the others; none reads half a report or fails."""
    processes = [subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert not [name for name in entries(tmp_path) if name.endswith(".tmp")]


def test_the_identity_is_that_of_the_real_file(tmp_path):
    trace = tmp_path / "t.json"
    trace.write_text("{}")
    (tmp_path / "link.json").symlink_to(trace)
    known = identity_of(str(tmp_path / "link.json"))
    assert known == identity_of(str(trace))
    os.utime(trace, ns=(0, time.time_ns() + 1))
    assert identity_of(str(trace)) != known
    assert identity_of(str(tmp_path)) is None
    assert identity_of(str(tmp_path / "absent")) is None


@pytest.mark.parametrize("name", ["code.py", "knowledge/advice.toml"])
def test_any_change_of_code_or_facts_is_another_version(tmp_path, monkeypatch, name):
    monkeypatch.setattr(file_identity, "PACKAGE", tmp_path)
    changed = Path(tmp_path / name)
    changed.parent.mkdir(exist_ok=True)
    versions = set()
    for content in ("a = 1", "a = 2"):
        changed.write_text(content)
        versions.add(code_version.__wrapped__())
    assert len(versions) == 2
