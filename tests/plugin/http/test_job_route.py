"""Tests of the route `job`, through TensorBoard's own application and a real worker process."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.draw import drawn
from simulate.jobs.as_traces import write_traces
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.__main__ import main
from tests.plugin.tenant import Tenant, until

MoveIn = Callable[..., Tenant]
DIAGNOSE = "tb_bottleneck.diagnosis.trace:diagnose"
WAITS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    gpu     abab......abab......abab......
    nccl    ....nnnnnn....nnnnnn....nnnnnn
"""
SLOW = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    gpu     ababababa.ababababa.ababababa.
    nccl    .........n.........n.........n
"""


def simulated(folder: Path, ranks: int = 4) -> Path:
    """Writes the traces of a job whose rank 2 waits for data."""
    program = TOPOLOGIES["data"](Shape(ranks=ranks, steps=5, seed=1), Faults(input={2: 0.5}))
    write_traces(program, execute(program), folder)
    return folder


@pytest.fixture(scope="module")
def saved_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of 12 ranks with its saved report, as the command line writes it."""
    folder = simulated(tmp_path_factory.mktemp("saved") / "job", ranks=12)
    assert main(["diagnose", "--write", str(folder)]) == 0
    return folder


def drawn_job(folder: Path, ranks: int = 3) -> None:
    """Writes traces of ranks whose collectives cannot be paired."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}}
        path = folder / f"rank{rank}.pt.trace.json"
        path.write_text(json.dumps(drawn(SLOW if rank == 1 else WAITS, 1000, **about)))


def answer_of(tenant: Tenant, source: str = "rank0.pt.trace.json", more: str = "") -> dict[str, Any]:
    tenant.done(source)
    response = tenant.ready(f"job?id={tenant.entry(source)['id']}{more}")
    assert response.status_code == 200, response.text
    return dict(response.json or {})


def test_the_job_of_few_ranks_is_computed(move_in: MoveIn, tmp_path: Path) -> None:
    simulated(tmp_path / "job")
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    answer = answer_of(tenant)
    job, ranks = answer["job"], answer["ranks"]
    assert (answer["basis"], answer["speaker"], job["run"]) == ("computed", 2, "job")
    assert job["culprits"][0]["cause"] == "rank_input"
    assert job["verdict"]["action"].startswith("Speed up the data loader of rank 2: about ")
    assert job["verdict"]["headline"].startswith("The other ranks wait for rank 2, which waits for data")
    assert ranks["rank"] == [0, 1, 2, 3]
    assert ranks["id"] == [tenant.entry(source)["id"] for source in ranks["source"]]
    assert ranks["excess_share"][2] > 5 * max(ranks["excess_share"][:2])
    assert ranks["wait_share"][2] < min(ranks["wait_share"][:2])
    steps = answer["steps"]
    assert len(steps["begin_ns"]) == 4 * steps["count"]
    assert all(begin < end for begin, end in zip(steps["begin_ns"], steps["end_ns"], strict=True))


def test_a_brief_answer_has_only_the_verdict(move_in: MoveIn, tmp_path: Path) -> None:
    simulated(tmp_path / "job")
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    answer = answer_of(tenant, more="&brief=1")
    assert (answer["basis"], answer["job"]["world_size"], answer["job"]["culprits"]) == ("computed", 4, [])
    assert answer["job"]["verdict"]["action"]
    assert "ranks" not in answer
    assert "steps" not in answer


def test_the_saved_report_is_shown_without_reading_a_trace(move_in: MoveIn, tmp_path: Path, saved_job: Path) -> None:
    shutil.copytree(saved_job, tmp_path / "job")
    tenant = move_in(tmp_path)  # the fake analysis
    answer = answer_of(tenant)
    assert (answer["basis"], answer["other_version"], answer["job"]["run"]) == ("saved", False, "job")
    assert answer["job"]["culprits"][0]["fix"]["code"].startswith("loader = DataLoader")
    assert len(answer["ranks"]["id"]) == 12
    listed = {entry["source"]: entry["id"] for entry in tenant.listed()}
    assert listed == dict(zip(answer["ranks"]["source"], answer["ranks"]["id"], strict=True))
    brief = answer_of(tenant, more="&brief=1")
    assert (brief["basis"], brief["job"]["verdict"]) == ("saved", answer["job"]["verdict"])


def training_of(tenant: Tenant) -> dict[str, Any]:
    """Returns the job's entry in the list, once all recordings are done."""
    tenant.listed()
    answer = until(tenant.runs, lambda answer: all(run["state"] == "done" for run in answer["runs"]))
    (training,) = answer["trainings"]
    return dict(training) | {"runs": answer["runs"]}


def test_the_list_has_the_saved_verdict_and_no_trace_is_analysed(
    move_in: MoveIn, tmp_path: Path, saved_job: Path
) -> None:
    shutil.copytree(saved_job, tmp_path / "job")
    tenant = move_in(tmp_path, analyse="tests.plugin.no_such_module:analyse")
    training = training_of(tenant)
    saved = tenant.ready(f"job?id={training['runs'][0]['id']}").json or {}
    assert training["job"]["verdict"] == saved["job"]["verdict"]
    assert training["job"]["action"] == saved["job"]["culprits"][0]["fix"]["action"]
    assert training["runs"][training["members"][0]]["rank"] == saved["speaker"] == 2
    for entry in training["runs"]:
        row = saved["ranks"]["source"].index(entry["source"])
        assert (entry["rank"], entry["step_ns"]) == (saved["ranks"]["rank"][row], saved["ranks"]["step_ns"][row])
        assert entry["verdict"]["regime"] == saved["ranks"]["regime"][row]
    opened = tenant.report("rank3.pt.trace.json")
    assert opened["health"]["status"] == "unreadable"  # only now: the analysis does not exist
    assert tenant.entry("rank4.pt.trace.json")["health"] == "ok"


def test_the_list_names_no_rank_until_the_ranks_are_judged_together(move_in: MoveIn, tmp_path: Path) -> None:
    simulated(tmp_path / "job")
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    training = training_of(tenant)
    assert training["job"] == {"world_size": 4, "ranks": 4, "action": ""}
    computed = answer_of(tenant)
    assert training_of(tenant)["job"]["verdict"] == computed["job"]["verdict"]


def test_a_stale_report_is_not_shown(move_in: MoveIn, tmp_path: Path, saved_job: Path) -> None:
    folder = shutil.copytree(saved_job, tmp_path / "job")
    os.utime(folder / "rank7.pt.trace.json", (1, 1))
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    answer = answer_of(tenant)
    assert answer["basis"] == "accounts"
    assert training_of(tenant)["job"] == {"world_size": 12, "ranks": 12, "action": ""}
    assert answer["because"].startswith("1 of the 12 traces of the saved report have changed")
    assert answer["command"] == f"tb-bottleneck diagnose --write {folder}"


def test_more_ranks_are_judged_by_their_accounts(move_in: MoveIn, tmp_path: Path) -> None:
    drawn_job(tmp_path / "it's a job", ranks=9)
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    answer = answer_of(tenant)
    assert (answer["basis"], answer["job"]["stragglers"][0]["rank"]) == ("accounts", 1)
    assert "at most 8 ranks" in answer["because"]
    assert answer["command"].endswith("""it'"'"'s a job'""")
    assert len(answer["ranks"]["rank"]) == 9
    for position in range(9):
        shares = sum(column["share"][position] for column in answer["ranks"]["account"])
        assert shares == pytest.approx(1, abs=0.01)


def test_a_recording_of_one_process_has_no_job(move_in: MoveIn, tmp_path: Path) -> None:
    drawn_job(tmp_path / "job")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "one.pt.trace.json").write_text(json.dumps(drawn(WAITS, 1000)))
    alone = answer_of(move_in(tmp_path, analyse=DIAGNOSE), "one.pt.trace.json")
    assert (alone["basis"], "job" in alone, "ranks" in alone) == ("none", False, False)
    assert alone["because"].startswith("No other recording of this run")


def test_an_untrusted_report_is_not_shown(move_in: MoveIn, tmp_path: Path, saved_job: Path) -> None:
    folder = shutil.copytree(saved_job, tmp_path / "job")
    (folder / "rank0.pt.trace.json.job.bottlenecks.json").write_text('{"format": 1}')
    answer = answer_of(move_in(tmp_path, analyse=DIAGNOSE))
    assert answer["basis"] == "accounts"
    assert "is not the saved report of a job" in answer["because"]


@pytest.mark.parametrize(
    ("save", "damage"), [(True, False), (False, False), pytest.param(True, True, marks=pytest.mark.nightly)]
)
def test_names_of_hosts_are_hidden(
    move_in: MoveIn, tmp_path: Path, capsys: pytest.CaptureFixture[str], save: bool, damage: bool
) -> None:
    folder = simulated(tmp_path / "job")
    for rank in range(4):
        (folder / f"rank{rank}.pt.trace.json").rename(folder / f"gpu17_{rank}.176400000000{rank}.pt.trace.json")
    if save:
        assert main(["diagnose", "--write", str(folder)]) == 0
    if damage:
        (folder / "gpu17_0.1764000000000.pt.trace.json.job.bottlenecks.json").write_text("{}")
    tenant = move_in(tmp_path, analyse=DIAGNOSE)
    sources = [entry["source"] for entry in tenant.listed()]
    answer = answer_of(tenant, sources[0])
    assert answer["basis"] == ("saved" if save and not damage else "computed")
    assert answer["ranks"]["source"] == sources
    assert "gpu17" not in json.dumps(answer)


def test_telemetry_has_no_job(move_in: MoveIn, tmp_path: Path) -> None:
    tenant = move_in(tmp_path)
    tenant.listed()
    assert tenant.get("job").status_code == 400
    assert tenant.get("job?id=../../etc/passwd").status_code == 404
