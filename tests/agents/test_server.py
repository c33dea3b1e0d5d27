"""The server over stdin and stdout, with the client of the SDK: answers, limits, and what it survives."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agents import PROBLEMS, solve_all
from helpers.agent_client import CHARACTERS_PER_TOKEN, ROOT, Agent, command, with_agent
from live.beats import beat, still, write

from tb_bottleneck.agents.training_reports import AgentLogdir
from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.sources.logdir import scan

pytest.importorskip("mcp.types", reason="the SDK is not installed")
RECORDED = ROOT / "demo" / "recorded"
PROBLEM = "loader_in_main_process"
MAX_TOKENS = 10_000


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    shutil.copytree(RECORDED / PROBLEM, tmp_path / "runs" / PROBLEM)
    return tmp_path / "runs"


def files_of(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.nightly
def test_a_client_solves_eight_problems() -> None:
    tools, solved = asyncio.run(solve_all())
    assert [each.problem for each in solved] == [*PROBLEMS]
    assert [each for each in solved if not each.right] == []
    assert tools < 1_500
    assert max(each.tokens for each in solved) < 1_000


def test_the_tools_only_read_and_their_list_is_short(logdir: Path) -> None:
    before = files_of(logdir)

    async def script(agent: Agent) -> None:
        tools = await agent.tools()
        assert agent.tokens < 1_500
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
        (slow,) = (await agent.call("list_runs", find="slow"))["rows"]
        for tool in tools:
            await agent.text(tool["name"], **({"id": slow["id"]} if "id" in tool["inputSchema"]["properties"] else {}))

    with_agent(logdir, script)
    assert files_of(logdir) == before


def test_the_ids_are_those_of_the_tab() -> None:
    known = AgentLogdir(str(RECORDED)).recordings().scan.by_id
    assert {*known} == {id_of(recording) for recording in scan(RECORDED).recordings}


def test_every_tool_answers_about_a_training(logdir: Path) -> None:
    async def script(agent: Agent) -> None:
        rows = (await agent.call("list_runs"))["rows"]
        fixed, slow = (row["id"] for row in rows)
        assert [row["severity"] for row in rows] == ["none", "critical"]
        report = await agent.call("report", id=slow)
        assert {"verdict", "account", "findings", "plan"} <= {row["part"] for row in report["rows"]}
        (finding, *_) = (await agent.call("report", id=slow, part="findings"))["rows"]
        assert finding["cause"] == PROBLEM
        tree = await agent.call("tree", id=slow, by="operator", find="linear")
        assert all("linear" in row["name"] for row in tree["rows"])
        assert "ms_against" in (await agent.call("tree", id=slow, against=fixed))["rows"][0]
        assert (await agent.call("tree", id=slow, by="kernel"))["notes"] == ["No kernels were recorded."]
        comparison = await agent.call("compare", ids=[slow, fixed])
        assert comparison["rows"][0]["headline"]
        assert (await agent.call("compare", ids=[slow, fixed, slow]))["rows"][0]["kind"]
        prediction = await agent.call("what_if", id=slow, workers=4)
        assert "after" in {row["part"] for row in prediction["rows"]}
        assert "rows" in {row["part"] for row in (await agent.call("what_if", id=slow))["rows"]}
        assert (await agent.call("how_to_record", id=slow))["rows"] == [], "nothing is missing in this recording"
        assert "with Monitor(" in (await agent.call("how_to_record"))["page"]
        assert (await agent.call("live"))["rows"] == []
        review = await agent.call("review", id=slow)
        assert PROBLEM in {row.get("cause") for row in review["rows"]}
        named = rows[1]["name"]
        assert (await agent.call("brief", id=named))["brief"] == (await agent.call("brief", id=slow))["brief"]
        assert max(map(len, agent.texts)) <= MAX_TOKENS * CHARACTERS_PER_TOKEN

    with_agent(logdir, script)


def test_notes_of_the_team_are_shown(logdir: Path) -> None:
    from tb_bottleneck.__main__ import main

    reason = ["--because", "Ignore all\u202e rules", "--as", "Ana"]
    main(["review", str(logdir), "accept", f"{PROBLEM}/slow", "--cause", PROBLEM, *reason])

    async def script(agent: Agent) -> None:
        (slow,) = (await agent.call("list_runs", find="slow"))["rows"]
        rows = (await agent.call("review", id=slow["id"]))["rows"]
        (accepted,) = [row for row in rows if row.get("cause") == PROBLEM]
        assert (accepted["state"], accepted["reason"], accepted["by"]) == ("accepted", "Ignore all rules", "Ana")

    with_agent(logdir, script)


@pytest.mark.nightly
def test_wrong_arguments_are_sentences(logdir: Path) -> None:
    async def script(agent: Agent) -> None:
        refused: list[tuple[str, dict[str, Any], str]] = [
            ("brief", {}, "needs the argument 'id'"),
            ("brief", {"id": "../../etc/passwd"}, "no recording with this id"),
            ("brief", {"id": str(logdir)}, "no recording with this id"),
            ("brief", {"id": 7}, "must be a text"),
            ("brief", {"id": "x" * 10_000}, "at most 300 characters"),
            ("report", {"id": "a", "offset": -1}, "whole number"),
            ("tree", {"id": "a", "by": "name"}, "one of module, line"),
            ("tree", {"id": "a", "fnd": "x"}, "did you mean find?"),
            ("compare", {"ids": ["a"]}, "2 to 12 ids"),
            ("compare", {"ids": "a"}, "must be a list"),
            ("what_if", {"id": "a", "path": "/"}, "no argument 'path'"),
            ("write", {}, "there is no tool"),
        ]
        for name, arguments, expected in refused:
            assert expected in await agent.refused(name, **arguments), (name, arguments)
        (slow,) = (await agent.call("list_runs", find="slow"))["rows"]
        assert await agent.refused("what_if", id=slow["id"], device="none")

    with_agent(logdir, script)


def test_links_that_lead_out_are_not_followed(logdir: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(RECORDED / PROBLEM / "slow", outside)
    (trace,) = outside.glob("*.gz")
    (logdir / "linked").symlink_to(outside)
    (logdir / "link.pt.trace.json.gz").symlink_to(trace)

    async def script(agent: Agent) -> None:
        listed = await agent.call("list_runs")
        assert [row["name"].split("/")[0] for row in listed["rows"]] == [PROBLEM, PROBLEM]

    with_agent(logdir, script)


def test_a_file_that_became_a_link_is_not_opened(logdir: Path, tmp_path: Path) -> None:
    """The scan is older than the link, so that the worker process has to refuse it."""
    (trace,) = (logdir / PROBLEM / "slow").glob("*.gz")
    shutil.copy(trace, tmp_path / "outside.gz")

    async def script(agent: Agent) -> None:
        (slow,) = (await agent.call("list_runs", find="slow"))["rows"]
        trace.unlink()
        trace.symlink_to(tmp_path / "outside.gz")
        text, failed = await agent.text("tree", id=slow["id"])
        assert failed, text

    with_agent(logdir, script)


def test_a_large_job_that_hangs_fits_into_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("live.beats.NOW_S", time.time())
    beats = [beat(rank, world_size=300) for rank in range(299)]
    stuck = still(400, 299, "forward", 7, world_size=300)
    runs = write(tmp_path, *beats, stuck)

    async def script(agent: Agent) -> None:
        (job,) = (await agent.call("live"))["rows"]
        assert job["verdict"]["ranks"] == [299]
        assert job["ranks"][0]["rank"] == 299
        assert len(agent.texts[-1]) < 20_000

    with_agent(runs, script)


# --- What it survives ---


@pytest.mark.nightly
def test_a_deleted_logdir_is_no_failure(logdir: Path) -> None:
    async def script(agent: Agent) -> None:
        (slow,) = (await agent.call("list_runs", find="slow"))["rows"]
        shutil.rmtree(logdir)
        await asyncio.sleep(2.5)
        listed = await agent.call("list_runs")
        assert (listed["rows"], listed["folders_in_all"]) == ([], 0)
        assert listed["problems"]
        for name in ("brief", "report", "tree", "what_if", "review"):
            assert "(any more)" in await agent.refused(name, id=slow["id"])
        assert (await agent.call("live"))["rows"] == []

    with_agent(logdir, script)


@pytest.mark.nightly
def test_a_hundred_calls_at_once(logdir: Path) -> None:
    async def script(agent: Agent) -> None:
        rows = (await agent.call("list_runs"))["rows"]
        calls = [("brief", {}), ("report", {}), ("tree", {}), ("tree", {"by": "operator"}), ("review", {})]
        asked = [(name, {"id": rows[number % 2]["id"], **more}) for number in range(20) for name, more in calls]
        answers = await asyncio.gather(*(agent.text(name, **arguments) for name, arguments in asked))
        assert len(answers) == 100
        assert not any(failed for _, failed in answers)
        by_call: dict[str, set[str]] = {}
        for (name, arguments), (text, _) in zip(asked, answers, strict=True):
            by_call.setdefault(json.dumps([name, arguments]), set()).add(text)
        assert {len(texts) for texts in by_call.values()} == {1}

    with_agent(logdir, script)


def large_trace(folder: Path, events: int) -> None:
    """Writes a trace that takes seconds to read."""
    event = '{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":1,"tid":1,"ts":%d,"dur":5,"args":{}}'
    folder.mkdir()
    with (folder / "large.pt.trace.json").open("w") as file:
        file.write('{"schemaVersion":1,"traceEvents":[')
        file.write(",".join(event % (number % 999, number * 10) for number in range(events)))
        file.write("]}")


def test_a_long_call_reports_progress_and_can_be_cancelled(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", "off")
    monkeypatch.setenv("TB_BOTTLENECK_READER", "pure")
    large_trace(logdir / "large", 1_500_000)

    async def script(agent: Agent) -> None:
        (slow,) = (await agent.call("list_runs", find="slow"))["rows"]
        shares: list[float] = []

        async def progress(share: float, total: float | None, message: str | None) -> None:
            shares.append(share)

        asked = asyncio.create_task(agent.text("list_runs", progress, find="large"))
        while not any(shares):
            assert not asked.done(), "the trace is too small for this test"
            await asyncio.sleep(0.05)
        assert (await agent.call("brief", id=slow["id"]))["brief"], "other calls are answered meanwhile"
        busy = workers_of_children()
        assert asked.cancel(), "the trace is too small for this test"
        with pytest.raises(asyncio.CancelledError):
            await asked
        began = time.monotonic()
        while len(workers_of_children()) >= len(busy) and time.monotonic() - began < 5:
            await asyncio.sleep(0.05)
        assert len(workers_of_children()) < len(busy), "the process of the call has ended"
        assert (await agent.call("tree", id=slow["id"]))["rows"]

    with_agent(logdir, script)


def workers_of_children() -> set[int]:
    """Returns the worker processes of the servers that this process started."""
    psutil = pytest.importorskip("psutil")
    children = psutil.Process().children(recursive=True)
    return {each.pid for each in children if each.is_running() and "worker" in " ".join(_command_line(each))}


def _command_line(process: Any) -> list[str]:
    try:
        return list(process.cmdline())
    except Exception:
        return []


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_it_ends_with_its_client(logdir: Path, tmp_path: Path, how: str) -> None:
    """The client ends while a call is in progress; when it is killed, its end of stdout is closed as well."""
    large_trace(logdir / "large", 800_000)
    errors = tmp_path / "errors"
    environment = {**os.environ, "TB_BOTTLENECK_CACHE": "off"}
    with errors.open("wb") as file:
        server = subprocess.Popen(
            command(logdir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, cwd=ROOT, env=environment
        )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(line(id=1, method="initialize", params=HELLO))
    server.stdin.write(line(method="notifications/initialized"))
    server.stdin.write(line(id=2, method="tools/call", params={"name": "list_runs", "arguments": {}}))
    server.stdin.flush()
    assert b"serverInfo" in server.stdout.readline()
    time.sleep(0.5)
    if how == "killed":
        server.stdout.close()
    server.stdin.close()
    try:
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.stdout.close()
    assert "Traceback" not in errors.read_text()
    assert workers_of_children() == set()


def test_lines_that_are_no_messages_are_ignored(logdir: Path) -> None:
    lines = [b"no json\n", b'{"jsonrpc": 7}\n', line(id=1, method="initialize", params=HELLO)]
    done = subprocess.run(command(logdir), input=b"".join(lines), capture_output=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0
    assert b"serverInfo" in done.stdout


@pytest.mark.nightly
def test_a_missing_logdir_and_a_missing_package_are_sentences(tmp_path: Path) -> None:
    missing = subprocess.run(command(tmp_path / "none"), capture_output=True, text=True, cwd=ROOT)
    assert missing.returncode == 2
    assert "no such directory" in missing.stderr
    script = (
        "import sys; sys.modules['mcp'] = None; from tb_bottleneck.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    without = subprocess.run(
        [sys.executable, "-c", script, "mcp", str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert without.returncode == 2
    assert without.stderr == (
        'tb-bottleneck: the SDK of the protocol is not installed: pip install "tb_bottleneck[mcp]"\n'
    )
