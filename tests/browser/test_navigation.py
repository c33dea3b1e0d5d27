"""Places in the browser's history, keyboard shortcuts, and tabs without content."""

import json
import re
from urllib.parse import quote

from helpers.draw import drawn
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.boards import RECORDED
from tests.browser.pages import PATIENCE, VIEWS
from tests.browser.stage import NAME

ONE = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    op      ....##........##........##....
    gpu     ....aabbcc....aabbcc....aabbcc
"""
TRAININGS = len({path.parent for path in RECORDED.rglob("*.pt.trace.json.gz")})


def selected(seen):
    """Returns the selected tab."""
    return seen.frame.locator("[role=tab][aria-selected=true]")


def test_back_returns_through_the_places_and_leaves_tensorboard_only_from_the_first(look):
    seen = look("diagnosis", fresh=True)
    first = seen.page.url
    entries = "history.length"
    before = seen.page.evaluate(entries)
    seen.frame.get_by_role("tab", name="Where").click()
    expect(seen.frame.locator(VIEWS["tree"]).first).to_be_visible(timeout=PATIENCE)
    seen.frame.locator("nav.runs [role=option]", has_text="reads").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("reads", timeout=PATIENCE)
    assert seen.page.evaluate(entries) == before + 2
    seen.page.go_back()
    expect(seen.frame.locator(".headline .path")).to_contain_text("starved", timeout=PATIENCE)
    expect(selected(seen)).to_have_text("Where")
    seen.page.go_back()
    expect(selected(seen)).to_have_text("Diagnosis")
    assert seen.page.url == first
    seen.page.go_forward()
    expect(selected(seen)).to_have_text("Where")


def test_several_recordings_open_with_an_overview_to_which_back_returns(staged_board, visit):
    seen = visit(staged_board, fresh=True)
    overview = seen.frame.locator("article.overview")
    expect(overview).to_be_visible(timeout=PATIENCE)
    seen.page.wait_for_function("location.hash.includes('.all=')")
    assert violations(seen, False) == []
    overview.get_by_role("searchbox").fill("critical checkpoint")
    rows = overview.locator("tbody tr")
    expect(rows).to_have_count(1, timeout=PATIENCE)
    rows.get_by_role("button").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("checkpoints", timeout=PATIENCE)
    seen.page.go_back()
    expect(rows).to_have_count(1, timeout=PATIENCE)
    expect(overview.get_by_role("searchbox")).to_have_value("critical checkpoint")
    seen.frame.get_by_role("button", name="Overview of all trainings").click()
    overview.get_by_role("combobox", name="Group by").select_option("folder")
    groups = overview.get_by_role("table", name="Trainings by folder")
    expect(groups.get_by_role("button", name="job")).to_be_visible(timeout=PATIENCE)


def test_the_ranks_of_a_job_are_one_entry_that_opens_their_view_and_each_rank_is_one_click_away(staged_board, visit):
    seen = visit(staged_board)
    entry = seen.frame.locator("nav.runs [role=option]", has_text="job")
    expect(entry).to_have_count(1, timeout=PATIENCE)
    entry.click()
    expect(seen.frame.locator(VIEWS["job"])).to_be_visible(timeout=PATIENCE)
    parts = seen.frame.get_by_role("navigation", name="Recordings of this training")
    chosen = parts.get_by_role("combobox")
    expect(chosen.get_by_role("option")).to_have_text(["Rank 0", "Rank 1", "Rank 2"])
    chosen.select_option("Rank 2")
    expect(seen.frame.locator(".headline .path")).to_contain_text("rank2", timeout=PATIENCE)
    expect(chosen.locator("option:checked")).to_have_text("Rank 2")
    expect(seen.frame.locator("nav.runs [aria-selected=true]")).to_contain_text("job")
    assert violations(seen, False) == violations(seen, True) == []


def test_trace_and_telemetry_of_a_training_are_one_entry_and_an_old_address_shows_either(recorded_board, visit):
    (trace,) = (RECORDED / "slow_storage/slow").glob("*.pt.trace.json.gz")
    seen = visit(recorded_board, quote(f"slow_storage/slow/{trace.name}", safe=""))
    parts = seen.frame.get_by_role("navigation", name="Recordings of this training")
    expect(parts).to_contain_text("The verdict of the telemetry counts.", timeout=PATIENCE)
    expect(parts.get_by_role("button", name="Trace")).to_have_attribute("aria-current", "true")
    headline = seen.frame.locator(".headline h1")
    said = headline.inner_text()
    parts.get_by_role("button", name="Telemetry trusted").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("telemetry", timeout=PATIENCE)
    expect(headline).to_have_text(said)
    expect(seen.frame.locator("nav.runs .count")).to_have_text(str(TRAININGS), timeout=PATIENCE)


def test_a_view_that_telemetry_does_not_have_opens_with_the_trace_of_the_training(recorded_board, visit):
    (events,) = (RECORDED / "slow_storage/slow").rglob("events.out.tfevents.*")
    telemetry = events.relative_to(RECORDED).as_posix()
    seen = visit(recorded_board, quote(telemetry, safe=""), fresh=True)
    timeline = seen.frame.get_by_role("tab", name="Timeline")
    expect(timeline).to_be_visible(timeout=PATIENCE)
    for name in ("Where", "Timeline", "Compare"):
        tab = seen.frame.get_by_role("tab", name=name)
        expect(tab).to_have_attribute("title", "Shows another recording of this training: Trace")
        assert tab.get_attribute("aria-disabled") is None
    said = seen.frame.locator(".headline h1").inner_text()
    timeline.click()
    expect(seen.frame.locator(VIEWS["timeline"])).to_be_visible(timeout=PATIENCE)
    parts = seen.frame.get_by_role("navigation", name="Recordings of this training")
    expect(parts.locator("option:checked")).to_contain_text("Trace")
    expect(seen.frame.locator(".headline h1")).to_have_text(said)
    expect(selected(seen)).to_be_focused()
    seen.frame.get_by_role("tab", name="Over time").click()
    expect(seen.frame.locator(VIEWS["live"])).to_be_visible(timeout=PATIENCE)
    expect(parts.locator("option:checked")).to_contain_text("Telemetry")
    seen.page.go_back()
    expect(selected(seen)).to_have_text("Timeline", timeout=PATIENCE)
    expect(seen.frame.locator(VIEWS["timeline"])).to_be_visible(timeout=PATIENCE)
    # A second step back before the address is complete may be lost.
    seen.page.wait_for_url(re.compile(r"view=timeline&p\.tb_bottleneck\.at="))
    seen.page.go_back()
    expect(selected(seen)).to_have_text("Diagnosis", timeout=PATIENCE)
    expect(parts.get_by_role("button", name="Telemetry (shown)")).to_be_visible()
    parts.get_by_role("button", name="Trace").click()
    expect(parts.get_by_role("button", name="Trace (shown)")).to_be_visible(timeout=PATIENCE)
    expect(selected(seen)).to_have_text("Diagnosis")


def test_one_recording_opens_with_its_report(board, visit, tmp_path):
    (tmp_path / NAME).write_text(json.dumps(drawn(ONE, 1000)))
    seen = visit(board("--logdir", str(tmp_path)))
    expect(seen.frame.locator(".headline h1")).to_be_visible(timeout=PATIENCE)
    assert seen.frame.get_by_role("button", name="Overview of all trainings").count() == 0


def test_a_recording_that_is_gone_is_not_the_overview(staged_board, visit):
    seen = visit(staged_board, quote(f"gone/{NAME}", safe=""))
    expect(seen.frame.get_by_role("heading", name="Recording not found")).to_be_visible(timeout=PATIENCE)
    expect(seen.frame.get_by_role("button", name="Overview of all trainings")).to_have_attribute(
        "aria-current", "false"
    )


def test_a_zoom_is_no_place_of_its_own(look):
    seen = look("timeline", fresh=True)
    before = seen.page.evaluate("history.length")
    seen.frame.get_by_role("button", name="Zoom in").click()
    seen.page.wait_for_function("location.hash.includes('.at=')")
    assert seen.page.evaluate("history.length") == before


def test_shortcuts_choose_recordings_and_views_but_not_while_typing(look):
    seen = look("diagnosis")
    path = seen.frame.locator(".headline .path")
    before = path.inner_text()
    path.click()  # the keys go to the tab, not to TensorBoard
    seen.page.keyboard.press("k")
    expect(path).not_to_have_text(before, timeout=PATIENCE)
    seen.page.keyboard.press("j")
    expect(path).to_have_text(before, timeout=PATIENCE)
    seen.page.keyboard.press("7")
    expect(selected(seen)).to_have_text("Compare")
    seen.page.keyboard.press("2")
    expect(selected(seen)).to_have_text("Where")
    seen.page.keyboard.press("6")  # this recording has no job
    expect(selected(seen)).to_have_text("Where")
    seen.page.keyboard.press("/")
    search = seen.frame.get_by_role("searchbox", name="Filter trainings")
    expect(search).to_be_focused()
    seen.page.keyboard.type("j1")
    expect(search).to_have_value("j1")
    expect(selected(seen)).to_have_text("Where")


def test_a_panel_lists_the_shortcuts(look):
    seen = look("diagnosis")
    panel = seen.frame.get_by_role("dialog", name="Keyboard shortcuts")
    seen.frame.locator(".headline .path").click()
    seen.page.keyboard.press("?")
    expect(panel).to_contain_text("Next recording")
    assert violations(seen, False) == []
    seen.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    seen.frame.get_by_role("button", name="Keyboard shortcuts").click()
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()


def test_a_tab_without_content_says_why(look):
    seen = look("diagnosis")
    job = seen.frame.get_by_role("tab", name="Job")
    expect(job).to_have_attribute("aria-disabled", "true")
    expect(job).to_have_attribute("title", "This run has one process.")
    job.click(force=True)
    expect(selected(seen)).to_have_text("Diagnosis")
    seen.frame.get_by_role("tab", name="Over time").focus()
    seen.page.keyboard.press("ArrowRight")
    expect(job).to_be_focused()
    expect(selected(seen)).to_have_text("Diagnosis")
