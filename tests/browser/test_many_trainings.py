"""224 trainings with long names that begin alike: the wanted one is found, and its columns and groups are shown."""

import re
import time
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.accessibility import violations
from tests.browser.pages import PATIENCE, overhang

COUNT = 224
DAY_MS = 86_400_000
NAME = "user1_resnet50_augmented_lr3e-4_bs256_cosine_{}_seed{:03}"
INPUT = ("input", "Waiting for data", "critical", "Let worker processes create the batches")
COMPUTE = ("compute", "Compute", "none", "")


def entry(number: int, now_ms: float) -> dict[str, Any]:
    """Returns the entry of one training: every fourth has slow loading, and one a day was recorded."""
    regime, title, severity, action = INPUT if number % 4 == 0 else COMPUTE
    run = NAME.format("mixup" if number % 3 == 0 else "plain", number)
    at = int(now_ms - (number // 4 + 0.5) * DAY_MS)
    made: dict[str, Any] = {
        "id": f"{number:016x}",
        "run": f"team/vision/{run}",
        "source": f"host_{number}.{at}.pt.trace.json.gz",
        "size_bytes": 1e6,
        "modified_unix_ns": at * 1e6,
        "state": "done",
        "progress": 1,
        "health": "ok",
        "reason": "",
        "verdict": {"regime": regime, "title": title, "severity": severity, "share": 0.4, "confidence": "high"},
        "step_ns": 5e7 + 1e5 * number,
        "step_times_ns": [5e7, 6e7, 5e7],
        "witness": "trace",
        "evidence_source": "trace",
        "live": False,
        "device": "NVIDIA H200" if number % 2 else "NVIDIA A100",
        "action": action,
        "efficiency": {"samples_per_step": 256, "samples_basis": ""},
    }
    made["verdict"] |= {"headline": "", "action": ""}
    if regime == "input":
        made["gain"] = {"expected": 1.5, "low": 1.4, "high": 1.6, "basis": "replay", "assumes": "", "because": ""}
    return made


def many(page: Page) -> None:
    """Answers the request for the list."""
    runs = [entry(number, time.time() * 1000) for number in range(COUNT)]
    answer = {"state": "ready", "logdir": "/runs", "runs": runs, "problems": [], "trainings": []}
    page.route("**/tb_bottleneck/runs", lambda route: route.fulfill(json=answer))


def test_slow_loader_last_week_and_a_part_of_the_name_find_the_training_in_three_actions(staged_board, visit):
    seen = visit(staged_board, before=many, fresh=True, viewport={"width": 1400, "height": 900})
    overview = seen.frame.locator("article.overview")
    expect(overview.get_by_role("heading", level=1)).to_have_text(f"{COUNT} trainings", timeout=PATIENCE)
    rows = overview.get_by_role("table", name="Trainings").locator("tbody tr")
    overview.get_by_role("searchbox").fill("slow loader mixup")  # 1
    overview.get_by_role("combobox", name="Recorded").select_option(label="last week")  # 2
    expect(rows).to_have_count(3)  # 0, 12 and 24
    expect(rows.locator("th .link").first).to_be_in_viewport()
    expect(overview.locator(".severities")).to_have_text(re.compile(r"^\s*3\s*Critical\s*$"))
    wanted = rows.get_by_role("button", name=re.compile("seed012"))
    wanted.click()  # 3
    seen.page.wait_for_function("location.hash.includes('mixup_seed012')")
    seen.page.go_back()
    expect(overview.get_by_role("searchbox")).to_have_value("slow loader mixup", timeout=PATIENCE)
    expect(rows).to_have_count(3)
    assert seen.errors == []


LATE_HISTORY = """
const late = (call, ms) => (...inputs) => new Promise((done) => setTimeout(done, ms)).then(() => call(...inputs));
if (window.top === window) {
  const add = window.addEventListener.bind(window);
  window.addEventListener = (type, listener, ...rest) =>
    add(type, type === "hashchange" ? late(listener, 3000) : listener, ...rest);
} else {
  const usual = window.fetch.bind(window);
  window.fetch = (url, ...rest) => (String(url).includes("report") ? late(usual, 1500) : usual)(url, ...rest);
}
"""
"""The report is there after a step in the history, and before the page gets its event."""


def many_and_late(page: Page) -> None:
    many(page)
    page.add_init_script(LATE_HISTORY)


def test_back_leads_to_the_overview_although_an_answer_comes_first(staged_board, visit):
    seen = visit(staged_board, before=many_and_late, fresh=True, viewport={"width": 1400, "height": 900})
    overview = seen.frame.locator("article.overview")
    overview.get_by_role("searchbox").fill("plain_seed001")
    overview.get_by_role("button", name=re.compile("seed001")).click()
    seen.page.wait_for_function("location.hash.includes('host_1.')")
    seen.page.go_back()
    expect(overview.get_by_role("searchbox")).to_have_value("plain_seed001", timeout=PATIENCE)


def test_names_keep_what_differs_and_lose_what_all_share(staged_board, visit):
    seen = visit(staged_board, before=many, fresh=True, viewport={"width": 390, "height": 800})
    names = seen.frame.locator("article.overview tbody th .link")
    expect(names).to_have_count(25, timeout=PATIENCE)  # drawn over several frames
    shown = names.all_inner_texts()
    assert len(set(shown)) == len(shown)
    assert all(re.fullmatch(r"…(mixup|plain)_seed\d{3}", name) for name in shown)
    assert overhang(seen) == 0


def test_columns_groups_and_trends_are_chosen_and_kept_in_the_address(staged_board, visit):
    seen = visit(staged_board, before=many, fresh=True, viewport={"width": 1400, "height": 900})
    overview = seen.frame.locator("article.overview")
    table = overview.get_by_role("table", name="Trainings")
    expect(table.get_by_role("columnheader", name="Samples/s")).to_be_visible(timeout=PATIENCE)
    memory = table.locator("tbody tr").first.get_by_label("Not known: No memory was recorded", exact=False)
    expect(memory).to_be_visible()
    overview.get_by_text("Columns", exact=True).click()
    overview.get_by_role("checkbox", name="Samples/s").uncheck()
    expect(table.get_by_role("columnheader", name="Samples/s")).to_have_count(0)
    overview.get_by_role("combobox", name="Group by").select_option("device")
    groups = overview.get_by_role("table", name="Trainings by device").locator("tbody tr")
    expect(groups).to_have_count(2)
    newer = groups.filter(has_text="H200")
    expect(newer.locator("svg.spark")).to_be_visible()
    expect(newer).to_contain_text("72.1 ms → 50.3 ms")
    assert violations(seen, False) == violations(seen, True) == []
    newer.get_by_role("button", name="NVIDIA H200").click()
    expect(overview.get_by_role("heading", level=1)).to_have_text("112 of 224 trainings")
    seen.page.reload()
    frame = seen.page.wait_for_selector("iframe[src*='tb_bottleneck']", timeout=PATIENCE).content_frame()
    expect(frame.locator("article.overview h1")).to_have_text("112 of 224 trainings", timeout=PATIENCE)
    expect(frame.get_by_role("columnheader", name="Samples/s")).to_have_count(0)
