"""Jobs that train now: what holds them up, in the list, in the overview and above their telemetry."""

import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from live.beats import NOW_S, beat, still
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.boards import RECORDED
from tests.browser.pages import PATIENCE


def write(logdir: Path, *beats: dict[str, Any]) -> None:
    """Writes the job with these heartbeats, as of now, beside telemetry."""
    (telemetry,) = (RECORDED / "checkpointing/slow").glob("tb_bottleneck/*/events.out.tfevents.*")
    late = time.time() - NOW_S
    for content in beats:
        folder = logdir / "job" / "tb_bottleneck" / f"20270115-000000_abc123_rank{content['rank']}_{content['pid']}"
        folder.mkdir(parents=True)
        for name in ("unix_ns", "began_unix_ns", "step_unix_ns"):
            content[name] += late * 1e9
        content["unix_ns"] += 3600e9  # it is as new as the test is old
        content["history"] = [[time.time() - 10 * part, 500, 20e6, 1e6, 9e6, None] for part in range(20, 0, -1)]
        (folder / "heartbeat.json").write_text(json.dumps(content))
        shutil.copy(telemetry, folder)


@pytest.fixture
def hung_job(tmp_path: Path) -> Path:
    """A logdir with two ranks of a job, one of which hangs, and another training."""
    stacks = [{"thread": "MainThread", "training": True, "frames": [["data.py", 41, "load"]]}]
    write(
        tmp_path,
        still(60, 0, "backward", 50, stacks=stacks),
        still(61, 1, "data", 41, stacks=stacks, where=["<b>data.py", 41, "load"]),
    )
    shutil.copytree(RECORDED / "loader_in_main_process/slow", tmp_path / "other")
    return tmp_path


def test_a_job_that_hangs_is_shown_everywhere_and_leads_to_its_ranks(hung_job, board, visit):
    address = board("--logdir", str(hung_job))
    seen = visit(address, fresh=True)
    alarm = seen.frame.get_by_role("alert")
    expect(alarm).to_contain_text("Rank 1 hangs at <b>data.py:41", timeout=PATIENCE)
    expect(alarm).to_contain_text("Rank 0 waits for it in the backward pass")
    expect(seen.frame.locator("nav.runs")).to_contain_text("does not go on", timeout=PATIENCE)
    alarm.get_by_role("button", name="Open").click()
    ranks = seen.frame.locator(".rank-history")
    expect(ranks.locator("tbody tr")).to_have_count(2, timeout=PATIENCE)
    expect(ranks.locator("tr.named")).to_contain_text("hangs")
    expect(seen.frame.locator(".live-notice")).to_contain_text("Rank 1 hangs")
    expect(seen.frame.get_by_role("button", name="measure their machines")).to_have_count(
        0
    )  # they cannot while it hangs
    ranks.locator("summary").first.click()
    expect(ranks.locator("pre").first).to_contain_text("data.py:41 load")
    assert violations(seen, dark=False) == violations(seen, dark=True) == []
    assert seen.errors == []


def test_a_running_job_offers_the_command_that_measures_the_machines(tmp_path, board, visit):
    slow = {"wall": 30e6, "backward": 5e6, "forward": 20e6}
    write(
        tmp_path, *(beat(rank, 3, recent=slow if rank == 1 else {"wall": 30e6, "backward": 20e6}) for rank in range(3))
    )
    (run,) = (tmp_path / "job" / "tb_bottleneck").glob("*rank1*")
    name = next(run.glob("events*")).relative_to(tmp_path).as_posix()
    seen = visit(board("--logdir", str(tmp_path)), quote(name, safe=""), fresh=True)
    notice = seen.frame.locator(".live-notice")
    expect(notice).to_contain_text("Now:", timeout=PATIENCE)
    notice.get_by_role("button", name="measure their machines").click()
    assert violations(seen, dark=False) == violations(seen, dark=True) == []
    assert seen.errors == []


def test_other_trainings_show_the_alarm_too(hung_job, board, visit):
    address = board("--logdir", str(hung_job))
    (trace,) = (hung_job / "other").glob("*.pt.trace.json.gz")
    seen = visit(address, quote(f"other/{trace.name}", safe=""), fresh=True)
    expect(seen.frame.get_by_role("alert")).to_contain_text("job:", timeout=PATIENCE)
    expect(seen.frame.locator(".headline h1")).to_be_visible(timeout=PATIENCE)
