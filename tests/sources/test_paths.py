"""The file interface for local files and URLs: both are read alike, and no other module opens files."""

import ast
import builtins
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
from helpers.draw import drawn

from tb_bottleneck.__main__ import main
from tb_bottleneck.base.errors import NotFound, Unreadable
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.cache.cached_diagnosis import diagnose_cached
from tb_bottleneck.report.cache.report_store import Store, identity_of
from tb_bottleneck.sources.logdir import scan
from tb_bottleneck.sources.paths import filesystem_of, is_url, status_of
from tb_bottleneck.sources.remote_files import _ns, _status
from tb_bottleneck.trace.trace import load

PACKAGE = Path(__file__).parents[2] / "tb_bottleneck"
TRACE = json.dumps(drawn("step aaabbb\nop ##.##.\ngpu .ab.ab", 1000)).encode()


@pytest.fixture
def memory():
    """fsspec's files in this process's memory."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    yield store
    store.store.clear()


def test_a_recording_in_memory_is_diagnosed_like_one_on_disk(memory, tmp_path):
    """The file is old, because a young one may still be growing."""
    local = tmp_path / "a_1.7.pt.trace.json.gz"
    local.write_bytes(gzip.compress(TRACE))
    memory.pipe("/runs/x/a_1.7.pt.trace.json.gz", gzip.compress(TRACE))
    assert diagnose("memory://runs/x/a_1.7.pt.trace.json.gz") == diagnose(str(local))


def test_a_logdir_in_memory_from_the_command_line(memory, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", str(tmp_path))
    for path in ("/runs/x/a_1.7.pt.trace.json", "/runs/y/z/trace.json", "/runs/y/notes.json"):
        memory.pipe(path, TRACE if "trace" in path else b"{}")
    assert main(["diagnose", "memory://runs", "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [(report["run"], report["source"]) for report in reports] == [
        ("x", "a_1.7.pt.trace.json"), ("y/z", "trace.json"),
    ]  # fmt: skip
    assert main(["diagnose", "memory://runs/y/z/trace.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"][0]["source"] == "trace.json"


def test_a_files_name_leads_to_no_other_place(memory, tmp_path):
    """fsspec interprets `::` as a chain of URLs: such a name would open a file on the server's own disk."""
    (tmp_path / "secret.trace.json").write_bytes(TRACE)
    memory.pipe(f"/runs/x::file://{tmp_path}/secret.trace.json", b"{}")
    memory.pipe("/runs/t.json", TRACE)
    found = scan("memory://runs")
    assert [one.path for one in found.recordings] == ["memory://runs/t.json"]
    assert "is skipped" in found.problems[0]


def test_cached_facts_about_a_url_are_dropped_if_its_content_changes(memory, tmp_path):
    url, store, read = "memory://runs/t.json", Store(tmp_path, "1"), []

    def analyse(path, run, progress):
        read.append(path)
        return diagnose(path, run=run)

    finished = json.dumps(drawn("step aaaabbbbcccc\nop ##.###.###.#\ngpu .ab..ab..ab.", 1000)).encode()
    memory.pipe("/runs/t.json", finished)
    for _ in range(2):
        diagnose_cached(analyse, store, url)
    assert read == [url]
    memory.pipe("/runs/t.json", finished + b" ")
    diagnose_cached(analyse, store, url)
    assert read == [url, url]


def test_a_tag_alone_makes_it_another_file():
    """Stores with times in whole seconds distinguish versions by it."""
    one, two = (_status({"type": "file", "size": 7, "ETag": tag, "LastModified": 5}) for tag in ("a", "b"))
    assert one != two
    assert (one.kind, one.size, one.mtime_ns, one.tag) == ("file", 7, 5_000_000_000, "a")


@pytest.mark.parametrize(
    ("result", "ns"),
    [(5, 5 * 10**9), (5.5, 55 * 10**8), ("1970-01-01T00:00:05Z", 5 * 10**9), ("soon", 0), (None, 0), ([], 0)],
)
def test_time_formats_of_stores(result, ns):
    assert _ns(result) == ns


def test_a_missing_package_is_named(monkeypatch):
    """The message names the package to install, for each command with a URL."""
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.partition(".")[0] in ("s3fs", "adlfs"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for url, package in (("s3://bucket/runs", "s3fs"), ("abfs://box/runs", "adlfs")):
        (problem,) = scan(url).problems
        assert f"Install {package}" in problem
        assert "pip install" in problem
        with pytest.raises(NotFound, match=package):
            status_of(url)
        report = diagnose(url + "/t.pt.trace.json")
        assert (report.health.status, package in report.health.reasons[0].detail) == ("unreadable", True)


def test_without_fsspec_it_says_so_and_local_files_are_read(tmp_path):
    (tmp_path / "t.pt.trace.json").write_bytes(TRACE)
    script = (
        "import sys; sys.modules['fsspec'] = None; sys.modules['fsspec.core'] = None\n"
        "from tb_bottleneck.sources.logdir import scan\n"
        f"print(len(scan({str(tmp_path)!r}).recordings), *scan('s3://x').problems)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "1 s3://x is read with fsspec, which is missing: python -m pip install fsspec\n"


def test_an_error_of_a_stores_own_package_is_an_error_of_reading(memory, monkeypatch):
    """Drivers raise errors of any type: no credentials, no network."""

    class NoCredentials(Exception):
        pass

    def refuse(*_, **__):
        raise NoCredentials("Unable to locate credentials")

    memory.pipe("/runs/t.json", TRACE)
    monkeypatch.setattr(type(memory), "info", refuse)
    (problem,) = scan("memory://runs").problems
    assert "Unable to locate credentials" in problem
    assert identity_of("memory://runs/t.json") is None
    with pytest.raises(Unreadable, match="Unable to locate credentials"):
        load("memory://runs/t.json")


def test_a_url_that_is_replaced_while_it_is_read_is_still_growing(memory):
    memory.pipe("/t.json", TRACE[: len(TRACE) // 2])
    report = diagnose("memory://t.json")
    assert [reason.code for reason in report.health.reasons] == ["growing"]


def test_a_sidecar_beside_a_url_is_never_written(memory, capsys, monkeypatch):
    """`s3://b/t.json` as a path would create a directory `s3:`."""
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", "off")
    memory.pipe("/t.json", json.dumps(drawn("step aaaabbbbcccc\nop ##.###.###.#\ngpu .ab..ab..ab.", 1000)).encode())
    before = sorted(os.listdir())
    assert main(["diagnose", "memory://t.json", "--json", "--write"]) == 1
    assert "next to local files only" in capsys.readouterr().err
    assert (sorted(os.listdir()), list(memory.store)) == (before, ["/t.json"])


@pytest.mark.parametrize(
    ("path", "url"), [("s3://b/x", True), ("memory://x", True), ("/a/b", False), ("C:\\a", False), ("a:b", False)]
)
def test_a_scheme_makes_a_url(path, url):
    assert is_url(path) == url
    assert (type(filesystem_of(path)).__name__ == "Remote") == url


# Modules that open, list or inspect files, and the reason.
FILE_MODULES = {
    "sources/file_system.py": "the local file system",
    "base/persistence.py": "the user's own cache directory, and files next to local ones",
    "base/calibration_store.py": "the calibrations in this directory",
    "sources/telemetry/tfrecord.py": "event files of the monitor, which grow: local ones only",
    "sources/telemetry/telemetry_file.py": "the same",
    "report/cache/report_store.py": "the cache in the user's own directory",
    "plugin/http/static_files.py": "the tab's own files",
    "workers/worker.py": "pipes",
    "commands": "what is written, and scripts that are run",
    "monitor": "the training's side: it writes",
    "live": "heartbeats in run directories, which are local",
    "sources/flight_recorder.py": "the same, of torch's Flight Recorder",
    "trial": "programs of the user that are run",
    "doctor": "its own temporary folder",
    "base/machine.py": "the id of the machine's start",
    "tools": "scripts of the user that are run",
    "knowledge": "the package's own facts",
    "bottlenecks": "the same",
    "export/parquet.py": "a local directory of the user, to which it writes",
    "review/store.py": "notes in a local logdir; a URL has none",
    "__main__.py": "a closed pipe",
}
_CALLS = {
    "open",
    "stat",
    "lstat",
    "scandir",
    "listdir",
    "walk",
    "exists",
    "is_file",
    "is_dir",
    "iterdir",
    "glob",
    "rglob",
}


def test_only_the_filesystem_module_opens_files():
    """A path from the user may be a URL, for which `open` would look for a local file `s3:`."""
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name in FILE_MODULES or name.split("/")[0] in FILE_MODULES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
                allowed = (
                    owner in ("storage", "system", "filesystem_of(path)", "PACKAGE", "zlib")
                    or name == "sources/remote_files.py"
                )
                assert called not in _CALLS or allowed, f"{name}:{node.lineno} {ast.unparse(node)[:60]}"
