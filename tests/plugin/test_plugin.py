"""Tests of the plugin class: loading, its tab, `is_active`, and the directories that it scans."""

import argparse
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.backend import application
from tensorboard.plugins.base_plugin import TBContext, TBLoader
from werkzeug.test import Client

from tb_bottleneck.plugin import plugin
from tb_bottleneck.plugin.entry import BottleneckLoader
from tb_bottleneck.sources.logdir import Listing, Root
from tests.plugin.tenant import Tenant, record

MoveIn = Callable[..., Tenant]

ROOT = Path(__file__).parents[2]
MODULE = "/data/plugin/tb_bottleneck/static/index.js"
TRACE = "host_1.1.pt.trace.json"


def test_the_loader_gives_a_plugin_that_tensorboard_lists(tmp_path: Path) -> None:
    plugin = BottleneckLoader().load(TBContext(logdir=str(tmp_path), data_provider=None))
    assert isinstance(BottleneckLoader(), TBLoader)
    listing = Client(application.TensorBoardWSGI([plugin])).get("/data/plugins_listing").json
    entry = listing["tb_bottleneck"]
    assert entry["tab_name"] == "Bottlenecks"
    assert entry["disable_reload"] is False
    assert entry["loading_mechanism"] == {"type": "IFRAME", "module_path": MODULE}
    assert entry["enabled"] is True
    plugin.close()


def test_a_plugin_that_cannot_be_loaded_leaves_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "tb_bottleneck.plugin.plugin", None)
    with caplog.at_level(logging.ERROR):
        assert BottleneckLoader().load(TBContext(logdir="")) is None
    assert "pip check" in caplog.text
    assert "Traceback" not in caplog.text


def test_an_invalid_variable_is_named_and_not_reported_as_a_broken_installation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TB_BOTTLENECK_MEMORY_GIB", "plenty")
    with caplog.at_level(logging.ERROR):
        assert BottleneckLoader().load(TBContext(logdir="")) is None
    assert "TB_BOTTLENECK_MEMORY_GIB is 'plenty'; set it to a positive number" in caplog.text
    assert "pip" not in caplog.text


def test_it_is_active_even_without_recordings_because_the_tab_shows_how_to_record(
    move_in: MoveIn, tmp_path: Path
) -> None:
    tenant = move_in(tmp_path)
    assert tenant.listed() == []
    assert tenant.plugin.is_active() is True


def test_is_active_does_not_wait_for_the_first_scan(
    move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = move_in(tmp_path)
    looked = threading.Event()

    def slow_scan(roots: object) -> Listing:
        looked.wait()
        return Listing((), ())

    monkeypatch.setattr(tenant.plugin._runs, "_scan", slow_scan)
    assert tenant.plugin.is_active() is True
    looked.set()
    tenant.listed()


def test_is_active_starts_no_analysis(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / TRACE)
    tenant = move_in(tmp_path)
    assert tenant.plugin.is_active()
    assert not tenant.plugin._analyses._slots


def test_is_active_never_touches_the_disk(move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path / TRACE)
    tenant = move_in(tmp_path)
    tenant.listed()
    asker = threading.get_ident()

    def refuse(*_: object, **__: object) -> None:
        assert threading.get_ident() != asker, "is_active touched the disk"
        raise OSError

    with monkeypatch.context() as guarded:
        for name in ("stat", "scandir", "listdir", "open"):
            guarded.setattr(os, name, refuse)
        guarded.setattr("builtins.open", refuse)
        answers = {tenant.plugin.is_active() for _ in range(1000)}
    assert answers == {True}


def test_a_logdir_spec_names_the_runs(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / "p" / TRACE)
    record(tmp_path / "q" / "deep" / TRACE)
    tenant = move_in(spec=f"a:{tmp_path}/p,b:{tmp_path}/q")
    assert [entry["run"] for entry in tenant.listed()] == ["a", "b/deep"]
    assert tenant.runs()["logdir"] == f"a:{tmp_path}/p,b:{tmp_path}/q"


def test_without_logdir_and_spec_nothing_is_scanned(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / TRACE)
    tenant = move_in("")
    assert tenant.listed() == []
    assert Tenant("").plugin._runs._roots == ()
    assert plugin.roots_of(TBContext(flags=None, logdir=None)) == ()


def test_a_relative_logdir_is_relative_to_the_working_directory_of_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.chdir(tmp_path)
    flags = argparse.Namespace(logdir_spec="")
    assert plugin.roots_of(TBContext(logdir="runs", flags=flags)) == (Root(str(tmp_path.resolve() / "runs")),)
    assert plugin.roots_of(TBContext(logdir="~/runs", flags=flags)) == (Root("/home/someone/runs"),)
    assert plugin.roots_of(TBContext(logdir="s3://b/runs", flags=flags)) == (Root("s3://b/runs"),)


def test_a_remote_logdir_gives_a_message(move_in: MoveIn) -> None:
    tenant = move_in("nosuchscheme://bucket/runs")
    assert tenant.listed() == []
    (problem,) = tenant.runs()["problems"]
    assert problem == "nosuchscheme://bucket/runs cannot be read: fsspec knows no scheme nosuchscheme://"


def test_a_logdir_at_a_url_is_listed_and_analysed(move_in: MoveIn, tmp_path: Path) -> None:
    (demo,) = (ROOT / "demo" / "recorded" / "checkpointing" / "fixed").glob("*.gz")
    (tmp_path / "a").mkdir()
    shutil.copy(demo, tmp_path / "a" / TRACE)
    tenant = move_in(f"local://{tmp_path}", analyse=plugin.ANALYSE)
    assert [entry["run"] for entry in tenant.listed()] == ["a"]
    assert tenant.report(TRACE)["health"]["status"] in ("ok", "degraded")


def test_the_server_process_imports_no_part_of_the_analysis() -> None:
    # msgspec is not among them: it takes half a megabyte, and its structs spare the server pauses of 0.1 s.
    unwanted = ("torch", "pynvml", "tb_bottleneck.diagnosis.trace", "tb_bottleneck.trace")
    script = f"import sys, tb_bottleneck.plugin.plugin; print(*(name for name in {unwanted} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []
