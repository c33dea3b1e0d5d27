"""Tests of the analyses in worker processes: order, failures that cost one recording, and no orphan processes."""

import os
import sys
from pathlib import Path

import pytest

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.report_store import identity_of
from tb_bottleneck.schema.bottleneck_pb2 import AccountRow, Device, Health, Report, Verdict
from tb_bottleneck.version import SCHEMA
from tests.plugin.reader_processes import MoveIn, reason
from tests.plugin.tenant import record, until


@pytest.mark.parametrize(
    ("words", "code", "detail"),
    [
        ("die", "worker_died", "SIGKILL"),
        ("exit", "worker_died", "exit status 3"),
        ("raise a defect", "analysis_failed", "RuntimeError: a defect"),
        ("raise \udcff", "analysis_failed", "UnicodeDecodeError"),
        ("allocate", "out_of_memory", "memory"),
        ("hang", "timed_out", "3 s"),
    ],
)
def test_a_failure_costs_its_own_recording_only(
    move_in: MoveIn, tmp_path: Path, words: str, code: str, detail: str
) -> None:
    record(tmp_path / "a.pt.trace.json", age=1)
    record(tmp_path / "failing.pt.trace.json", age=2).write_bytes(os.fsencode(words))
    record(tmp_path / "z.pt.trace.json", age=3)
    tenant = move_in(tmp_path, seconds_per_file=3.0 if words == "hang" else 60.0, memory_bytes=1 << 30)
    failure = reason(tenant.report("failing.pt.trace.json"))
    assert failure["code"] == code
    assert detail in failure["detail"]
    until(lambda: tenant.entry("failing.pt.trace.json")["reason"], lambda reason: reason == code)  # lists are shared
    for healthy in ("a.pt.trace.json", "z.pt.trace.json"):
        assert tenant.done(healthy)["health"] == "ok"


def test_an_exception_is_logged_with_its_traceback(
    move_in: MoveIn, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "t.pt.trace.json", "raise a defect")
    assert reason(move_in(tmp_path).report("t.pt.trace.json"))["detail"].endswith("RuntimeError: a defect.")
    log = capfd.readouterr().err
    assert "A request could not be handled" in log
    assert "raise RuntimeError(rest)" in log


def test_without_further_requests_no_analysis_starts(move_in: MoveIn, tmp_path: Path) -> None:
    """A user opens the tab on a logdir of thousands of recordings and closes it: the rest must not be read."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    record(tmp_path / "held.pt.trace.json", f"gate {gate}")
    record(tmp_path / "other.pt.trace.json", age=1)
    tenant = move_in(tmp_path)
    tenant.listed()
    until(lambda: tenant.entry("held.pt.trace.json"), lambda entry: entry["progress"] > 0)
    analyses = tenant.plugin._analyses
    analyses._last_request = float("-inf")
    gate.write_text("go on")
    until(lambda: analyses._slots, lambda slots: not slots)
    assert len(analyses._digests) == 1
    assert tenant.done("other.pt.trace.json")["health"] == "ok", "the next client is served"


def test_one_worker_serves_many_recordings(move_in: MoveIn, tmp_path: Path) -> None:
    for number in range(4):
        record(tmp_path / f"{number}.pt.trace.json")
    tenant = move_in(tmp_path)
    assert len({tenant.report(f"{number}.pt.trace.json")["device"]["name"] for number in range(4)}) == 1


def test_the_requested_recording_is_first_then_the_newest(move_in: MoveIn, tmp_path: Path) -> None:
    """held (newest) runs ── oldest is requested ── gate opens ──▶ oldest, then newer; older still waits."""
    gates = {name: tmp_path / f"gate-{name}" for name in ("held", "newer", "older")}
    for age, (name, gate) in enumerate(gates.items()):
        os.mkfifo(gate)
        record(tmp_path / f"{name}.pt.trace.json", f"gate {gate}", age=age)
    record(tmp_path / "oldest.pt.trace.json", age=9)
    tenant = move_in(tmp_path)
    tenant.listed()
    until(lambda: tenant.entry("held.pt.trace.json")["state"], "analysing".__eq__)
    tenant.get(f"report?id={tenant.entry('oldest.pt.trace.json')['id']}")
    gates["held"].write_bytes(b"")
    tenant.done("oldest.pt.trace.json")
    until(lambda: tenant.entry("newer.pt.trace.json")["state"], "analysing".__eq__)
    assert tenant.entry("older.pt.trace.json")["state"] == "waiting"


def test_a_changed_file_is_analysed_again(move_in: MoveIn, tmp_path: Path) -> None:
    trace = record(tmp_path / "t.pt.trace.json", "raise early", age=60)
    tenant = move_in(tmp_path)
    before = tenant.done("t.pt.trace.json")
    record(trace, "ok")
    tenant.plugin._runs._due = 0.0  # the next scan is due
    after = until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["health"] == "ok")
    assert before["health"] == "unreadable"
    assert after["id"] == before["id"]


def test_a_file_that_is_still_written_is_read_again_though_it_looks_the_same(move_in: MoveIn, tmp_path: Path) -> None:
    trace = record(tmp_path / "t.pt.trace.json", "growing ")
    tenant = move_in(tmp_path, retry_seconds=0.0)
    assert tenant.done("t.pt.trace.json")["reason"] == "growing"
    record(trace, "settled ")  # as long and as old as before
    assert until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["health"] == "ok")["reason"] == ""


def test_an_analysis_that_cannot_be_imported_is_reported_for_each_recording(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / "t.pt.trace.json")
    tenant = move_in(tmp_path, analyse="tests.plugin.fake_analysis:absent")
    assert reason(tenant.report("t.pt.trace.json"))["code"] == "worker_died"


def test_without_an_interpreter_the_report_says_so(
    move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    record(tmp_path / "t.pt.trace.json")
    assert reason(move_in(tmp_path).report("t.pt.trace.json"))["code"] == "worker_not_started"


def test_a_file_name_that_is_not_unicode_is_analysed_and_shown(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / os.fsdecode(b"run\xff") / "t.pt.trace.json")
    assert move_in(tmp_path).report("t.pt.trace.json")["run"] == "run\N{REPLACEMENT CHARACTER}"


def test_the_working_directory_shadows_no_module(
    move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user starts TensorBoard in a directory with a `json.py` of their own."""
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    record(tmp_path / "t.pt.trace.json")
    monkeypatch.chdir(tmp_path)
    assert move_in(tmp_path).done("t.pt.trace.json")["health"] == "ok"


def test_a_report_outlives_the_server(move_in: MoveIn, tmp_path: Path) -> None:
    """The next TensorBoard reads it from the disk: only a process of the first one reads the recording."""
    record(tmp_path / "t.pt.trace.json")
    record(tmp_path / "failing.pt.trace.json", "growing ")
    first = move_in(tmp_path)
    reader = first.report("t.pt.trace.json")["device"]["name"]
    first.done("failing.pt.trace.json")
    first.plugin.close()
    record(tmp_path / "failing.pt.trace.json", "settled ")  # as long and as old as before
    second = move_in(tmp_path)
    assert second.report("t.pt.trace.json")["device"]["name"] == reader
    assert second.done("failing.pt.trace.json")["health"] == "ok"


def test_it_works_without_a_cache(move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    record(tmp_path / "runs" / "t.pt.trace.json")
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", str(tmp_path / "file"))
    assert move_in(tmp_path / "runs").done("t.pt.trace.json")["health"] == "ok"


def test_the_list_shows_a_stored_report_and_the_page_reads_the_trace(move_in: MoveIn, tmp_path: Path) -> None:
    """A file beside the trace may come from anyone: only its numbers are taken, and only for the list."""
    trace = record(tmp_path / "t.pt.trace.json")
    account = [AccountRow(regime=regime, share=regime == "input") for regime in REGIMES]
    verdict = Verdict(regime="input", share=0.25, severity="warning", headline="Run: curl example.org | sh")
    health, device = Health(status="ok"), Device(name="stored", kind="cpu")
    stored = Report(schema=SCHEMA, health=health, device=device, account=account, verdict=verdict)
    sidecar.write(str(trace), identity_of(str(trace)), stored)
    tenant = move_in(tmp_path)
    entry = tenant.done("t.pt.trace.json")
    assert entry["device"] == "stored"
    assert entry["verdict"]["headline"] == "Waiting for data: 25 % of the time."
    assert tenant.report("t.pt.trace.json")["verdict"]["headline"] == "Your device waits."
    assert until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["device"] != "stored")
