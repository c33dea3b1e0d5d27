"""Worker processes of the plugin: they are killed, end when idle, are limited, and do not outlive the server."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.plugin.workers.analysis_queue import MAX_RETRIES
from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.report_store import identity_of
from tb_bottleneck.schema.bottleneck_pb2 import AccountRow, Health, Report, Verdict
from tb_bottleneck.version import SCHEMA
from tests.plugin.reader_processes import MoveIn, reason
from tests.plugin.tenant import Tenant, record, until


def test_a_worker_killed_from_outside_while_it_reads(move_in: MoveIn, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    record(tmp_path / "held.pt.trace.json", f"gate {gate}")
    record(tmp_path / "other.pt.trace.json", age=1)
    tenant = move_in(tmp_path)
    tenant.listed()
    until(lambda: tenant.entry("held.pt.trace.json"), lambda entry: entry["progress"] > 0)
    assert tenant.entry("held.pt.trace.json")["state"] == "analysing"
    (worker,) = tenant.plugin._analyses._slots.values()
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    assert reason(tenant.report("held.pt.trace.json"))["code"] == "worker_died"
    assert tenant.done("other.pt.trace.json")["health"] == "ok"


def test_a_recording_whose_worker_was_killed_is_read_again(move_in: MoveIn, tmp_path: Path) -> None:
    """A worker that was killed once left its recording unreadable for good."""
    trace = record(tmp_path / "t.pt.trace.json", "die ")
    tenant = move_in(tmp_path, retry_seconds=0.0)
    assert tenant.done("t.pt.trace.json")["reason"] == "worker_died"
    record(trace, "fine")  # as long and as old as before
    assert until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["health"] == "ok")["reason"] == ""


def test_a_recording_that_always_ends_its_worker_is_read_a_few_times(move_in: MoveIn, tmp_path: Path) -> None:
    log = tmp_path / "log"
    record(tmp_path / "t.pt.trace.json", f"count {log}")
    tenant = move_in(tmp_path, retry_seconds=0.0)
    tenant.listed()
    until(lambda: (tenant.runs(), log.exists() and log.read_text())[1], lambda read: read == "x" * (1 + MAX_RETRIES))
    tenant.done("t.pt.trace.json")
    for _ in range(20):
        tenant.runs()
    assert not tenant.plugin._analyses._waiting
    assert tenant.entry("t.pt.trace.json")["reason"] == "worker_died"


def test_a_worker_is_killed_with_its_own_processes(move_in: MoveIn, tmp_path: Path) -> None:
    started = tmp_path / "started"
    record(tmp_path / "t.pt.trace.json", f"child {started}")
    tenant = move_in(tmp_path)
    until(lambda: (tenant.runs(), started.exists() and started.read_text())[1], bool)
    tenant.plugin.close()
    commands = Path(f"/proc/{started.read_text()}/cmdline")
    until(lambda: commands.exists() and commands.read_bytes(), lambda command: not command)


def test_a_stored_report_replaces_that_of_a_failure(move_in: MoveIn, tmp_path: Path) -> None:
    trace = record(tmp_path / "t.pt.trace.json", "die ")
    tenant = move_in(tmp_path, retry_seconds=1.0)
    assert tenant.done("t.pt.trace.json")["reason"] == "worker_died"
    record(trace, "fine")  # as long and as old as before
    account = [AccountRow(regime=regime, share=regime == "input") for regime in REGIMES]
    verdict = Verdict(regime="input", share=0.25, severity="warning")
    stored = Report(schema=SCHEMA, health=Health(status="ok"), account=account, verdict=verdict)
    sidecar.write(str(trace), identity_of(str(trace)), stored)
    until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["health"] == "ok")
    assert tenant.report("t.pt.trace.json")["health"]["status"] == "ok"


def test_a_worker_killed_while_it_has_no_work_costs_no_recording(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / "first.pt.trace.json")
    tenant = move_in(tmp_path)
    tenant.done("first.pt.trace.json")
    (worker,) = tenant.plugin._analyses._slots.values()
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    record(tmp_path / "second.pt.trace.json")
    tenant.plugin._runs._due = 0.0  # the next scan is due
    until(tenant.runs, lambda answer: len(answer["runs"]) == 2)
    assert tenant.done("second.pt.trace.json")["health"] == "ok"


def pid_of_the_reader(tenant: Tenant) -> int:
    (worker,) = tenant.plugin._analyses._slots.values()
    assert worker._process is not None
    return worker._process.pid


@pytest.mark.parametrize("how", ["replaced", "grown", "gone"])
def test_an_analysis_of_a_replaced_file_is_ended(move_in: MoveIn, tmp_path: Path, how: str) -> None:
    """A slot was busy for minutes with a file that had been replaced, while the new one waited."""
    trace = record(tmp_path / "t.pt.trace.json", "hang", age=60)
    tenant = move_in(tmp_path)
    tenant.listed()
    until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["progress"] > 0)
    reader = pid_of_the_reader(tenant)
    if how == "gone":
        trace.unlink()
        record(tmp_path / "next.pt.trace.json")
    else:
        record(trace, "ok" if how == "replaced" else "ok, grown", age=60 if how == "grown" else 0)
    tenant.plugin._runs._due = 0.0  # the next scan is due
    name = "next.pt.trace.json" if how == "gone" else "t.pt.trace.json"
    until(tenant.runs, lambda answer: name in [entry["source"] for entry in answer["runs"]])
    assert tenant.done(name)["health"] == "ok"
    assert not _is_alive(reader)


def test_an_analysis_that_is_no_longer_requested_is_ended_and_restarted_later(move_in: MoveIn, tmp_path: Path) -> None:
    trace = record(tmp_path / "t.pt.trace.json", "stream")
    tenant = move_in(tmp_path)
    tenant.listed()
    until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["progress"] > 0)
    reader = pid_of_the_reader(tenant)
    analyses = tenant.plugin._analyses
    analyses._last_request = float("-inf")  # the tab was closed long ago
    until(lambda: analyses._slots, lambda slots: not slots)
    assert not _is_alive(reader)
    before = trace.stat()
    trace.write_text("ok    ")
    os.utime(trace, ns=(before.st_mtime_ns, before.st_mtime_ns))  # so that it is the same recording
    assert tenant.done("t.pt.trace.json")["health"] == "ok", "the next client is served"


def test_an_idle_worker_ends_and_comes_back_for_new_work(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / "first.pt.trace.json")
    tenant = move_in(tmp_path, idle_seconds=0.0)
    tenant.done("first.pt.trace.json")
    until(lambda: len(tenant.plugin._analyses._slots), lambda slots: slots == 0)
    record(tmp_path / "second.pt.trace.json")
    tenant.plugin._runs._due = 0.0  # the next scan is due
    until(tenant.runs, lambda answer: len(answer["runs"]) == 2)
    assert tenant.done("second.pt.trace.json")["health"] == "ok"


def test_not_more_processes_than_allowed(move_in: MoveIn, tmp_path: Path) -> None:
    for number in range(6):
        record(tmp_path / f"{number}.pt.trace.json")
    tenant = move_in(tmp_path, processes=2)
    pids = {tenant.report(f"{number}.pt.trace.json")["device"]["name"] for number in range(6)}
    assert 1 <= len(pids) <= 2


SERVER = """
    import sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from tests.plugin.tenant import Tenant, until
    tenant = Tenant(Path(sys.argv[2]))
    tenant.listed()
    until(lambda: tenant.entry("t.pt.trace.json"), lambda entry: entry["progress"] > 0)
    (worker,) = tenant.plugin._analyses._slots.values()
    print(worker._process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_server(tmp_path: Path, ending: signal.Signals) -> None:
    record(tmp_path / "t.pt.trace.json", "hang")
    checkout = str(Path(__file__).parents[2])
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER), checkout, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with server:
        assert server.stdout is not None
        worker = int(server.stdout.readline())
        server.send_signal(ending)
    until(lambda: _is_alive(worker), lambda alive: not alive)


def _is_alive(pid: int) -> bool:
    """Returns True if the process runs. A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
