"""Tests of the review in the answers of `runs`, `report` and `ledger`."""

import json
from collections.abc import Callable
from pathlib import Path

from helpers.draw import drawn

from tb_bottleneck.review.notes import Action
from tb_bottleneck.review.store import NoteWriter
from tests.plugin.tenant import Tenant, record, until

MoveIn = Callable[..., Tenant]
TRACE = "host_1.1.pt.trace.json"
SLOW = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""


def test_a_note_appears_in_the_list_and_in_the_report_while_the_server_runs(move_in: MoveIn, tmp_path: Path) -> None:
    record(tmp_path / "resnet" / "slow" / TRACE)
    tenant = move_in(tmp_path)
    assert "review" not in tenant.done(TRACE)
    files = {path.name for path in tmp_path.iterdir()}
    NoteWriter(str(tmp_path), "Ana").write(Action.ACCEPT, "resnet/slow", cause="sync", text="<b>debugging</b>")
    entry = until(lambda: tenant.entry(TRACE), lambda entry: "review" in entry)
    whole, sync = entry["review"]["states"]
    assert (whole["cause"], whole["state"]) == ("", "open")
    assert (sync["state"], sync["by"], sync["reason"]) == ("accepted", "Ana", "<b>debugging</b>")
    answer = tenant.ready(f"report?id={entry['id']}").json
    assert answer is not None
    assert answer["review"] == entry["review"]
    assert {path.name for path in tmp_path.iterdir()} == files | {".tb_bottleneck_review"}, "a request writes nothing"


def test_the_ledger_compares_the_fix_with_the_run_that_has_it(move_in: MoveIn, tmp_path: Path) -> None:
    for run, scale in (("slow", 1000), ("fast", 500)):
        (tmp_path / run).mkdir()
        (tmp_path / run / TRACE).write_text(json.dumps(drawn(SLOW, scale)))
    notes = NoteWriter(str(tmp_path), "Ana")
    for cause, run in (("loader_in_main_process", "slow"), ("", "gone")):
        notes.write(Action.FIXED, run, cause=cause, fixed_in="fast")
    tenant = move_in(tmp_path, analyse="tb_bottleneck.diagnosis.trace:diagnose")
    tenant.listed()
    answer = tenant.ready("ledger").json
    assert answer is not None
    # The list is a shared response: it may be older than the ledger.
    listed = until(tenant.listed, lambda entries: all(entry["state"] == "done" for entry in entries))
    assert {entry["run"]: entry["open_findings"] for entry in listed} == {"fast": 1, "slow": 0}
    found = [(row["run"], row["result"], row.get("measured", {}).get("speedup")) for row in answer["rows"]]
    assert found == [("slow", "miss", 2.0), ("gone", "unknown", None)]


def test_without_notes_the_ledger_is_empty(move_in: MoveIn, tmp_path: Path) -> None:
    tenant = move_in(tmp_path)
    assert tenant.ready("ledger").json == {"rows": [], "causes": []}
