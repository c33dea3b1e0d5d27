"""Ranks, memory, and shared forms of a report, in a real TensorBoard and a real Chromium."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from simulate.jobs.as_traces import write_traces
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.__main__ import main
from tests.browser.accessibility import violations
from tests.browser.pages import PATIENCE, VIEWS, overhang
from tests.browser.stage import telemetry


def test_a_job_leads_with_its_verdict_and_its_ranks_are_one_click_away(look):
    seen = look("job", run="job", source="rank0.17.pt.trace.json")
    heading = seen.frame.locator(".headline h1")
    expect(heading).to_contain_text("rank 1", timeout=PATIENCE)
    verdict = heading.inner_text()
    rows = seen.frame.locator("table[aria-label=Ranks] tbody tr")
    expect(rows).to_have_count(3)
    expect(seen.frame.locator(".straggler")).to_have_count(1)
    rows.nth(1).locator("button").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("rank1", timeout=PATIENCE)
    expect(seen.frame.get_by_role("tab", name="Diagnosis")).to_have_attribute("aria-selected", "true")
    expect(heading).to_have_text(verdict, timeout=PATIENCE)
    expect(seen.frame.locator(".headline")).to_contain_text("Rank 1 alone:")
    seen.frame.get_by_role("button", name="Show the job").click()
    expect(seen.frame.locator(VIEWS["job"])).to_be_visible(timeout=PATIENCE)


def test_the_heat_map_of_a_job_follows_the_keyboard(visit, board, tmp_path):
    program = TOPOLOGIES["data"](Shape(ranks=4, steps=5, seed=1), Faults(input={2: 0.5}))
    write_traces(program, execute(program), tmp_path / "job")
    assert main(["diagnose", "--write", str(tmp_path)]) == 0
    seen = visit(board("--logdir", str(tmp_path)), "job%2Frank0.pt.trace.json&p.tb_bottleneck.view=job")
    expect(seen.frame.locator(".headline h1")).to_contain_text("Speed up the data loader of rank 2", timeout=PATIENCE)
    expect(seen.frame.locator(".facts")).to_contain_text("Saved report")
    reading = seen.frame.locator(".heat-map .reading")
    seen.frame.locator(".heat-map .grid").focus()
    expect(reading).to_contain_text("Rank 0")
    seen.page.keyboard.press("ArrowRight")
    expect(reading).to_contain_text("Rank 1")
    shown = seen.frame.locator(".rank-timeline ol > li")
    expect(shown).to_have_count(4)
    seen.page.keyboard.press("Enter")
    expect(shown).to_have_count(3)
    seen.frame.get_by_role("checkbox", name="Rank 1 in the timeline").click()
    expect(shown).to_have_count(4)
    seen.frame.locator(".heat-map select").select_option(label="Its own verdict")
    expect(reading).to_contain_text("Own verdict:")
    assert violations(seen, False) == violations(seen, True) == []
    assert overhang(seen) == 0


def test_addresses_of_the_view_of_ranks_show_the_job(visit, staged_board):
    address = quote("job/rank0.17.pt.trace.json", safe="") + "&p.tb_bottleneck.view=ranks"
    seen = visit(staged_board, address)
    expect(seen.frame.locator(VIEWS["job"])).to_be_visible(timeout=PATIENCE)


def test_a_view_that_is_saved_holds_what_was_painted(look, watched, tmp_path, chromium):
    """The canvases were left out: a saved timeline was only a table, and saved telemetry was almost empty."""
    for name, seen, pictures in (("timeline", look("timeline"), 1), ("live", watched(telemetry()), 6)):
        seen.frame.locator(".share summary").click()
        with seen.page.expect_download() as downloading:
            seen.frame.locator(".share .menu button", has_text="HTML").click()
        downloading.value.save_as(tmp_path / f"{name}.html")
        context = chromium.new_context(java_script_enabled=False, offline=True)
        page = context.new_page()
        page.goto(f"file://{tmp_path / name}.html")
        assert page.locator("img").count() == pictures
        assert all(page.locator("img").evaluate_all("images => images.map(one => one.naturalWidth > 300)"))
        extent = page.locator(".extent").inner_text()
        context.close()
        assert " to " in extent


def test_a_report_is_shared_in_each_form(look, tmp_path, chromium):
    seen = look("diagnosis")
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def chosen(name):
        seen.frame.locator(".share summary").click()
        seen.frame.locator(".share .menu button", has_text=name).click()

    chosen("Copy the address")
    expect(seen.frame.locator(".share [role=status]")).to_contain_text("copied")
    assert "#tb_bottleneck" in seen.page.evaluate("navigator.clipboard.readText()")
    with seen.page.expect_download() as downloading:
        chosen("JSON")
    assert json.loads(Path(downloading.value.path()).read_text())["reports"][0]["verdict"]["regime"] == "input"
    with seen.page.expect_download() as downloading:
        chosen("HTML")
    downloading.value.save_as(tmp_path / "report.html")
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(f"file://{tmp_path / 'report.html'}")
    words = page.locator("body").inner_text()
    context.close()
    assert seen.frame.locator("h1").inner_text() in words
    assert "num_workers" in words
    assert "Waiting for data" in words
    assert "Copy the address" not in words


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_the_memory_is_shown_with_its_peak_and_its_leak(look, width):
    seen = look("memory", run="leak", viewport={"width": width, "height": 900})
    panel = seen.frame.locator("#panel .memory")
    expect(panel.locator("h2").first).to_contain_text("at the peak", timeout=PATIENCE)
    expect(panel.locator("[data-cause=retained_graph]")).to_contain_text("aten::linear")
    expect(panel.locator(".memory-curve svg text", has_text="peak:")).to_be_visible()
    expect(panel.locator("table[aria-label='Memory at the peak, by category'] tbody tr").first).to_contain_text(
        "Activations"
    )
    assert seen.frame.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_places_are_a_table_or_a_tree_and_blocks_have_lifetimes(look):
    seen = look("memory", run="leak")
    panel = seen.frame.locator("#panel .memory")
    table = panel.locator("table[aria-label='Where it was allocated']")
    expect(table).to_contain_text("aten::linear", timeout=PATIENCE)
    panel.get_by_role("button", name="Tree", exact=True).click()
    expect(panel.locator(".memory-tree .branch .name").first).to_be_visible()
    expect(panel.locator("table[aria-label='Lifetimes of blocks in this step'] .lifetime").first).to_be_visible()
    expect(panel.locator("svg[aria-label*='more memory than the one before']")).to_be_visible()


def test_the_whole_memory_can_be_downloaded(look):
    seen = look("memory", run="leak")
    table = seen.frame.locator("table[aria-label='Memory at the peak, by category']")
    expect(table).to_contain_text("Activations", timeout=PATIENCE)
    with seen.page.expect_download() as whole:
        seen.frame.locator("#panel .memory").get_by_role("button", name="Download as JSON").click()
    parts = json.loads(whole.value.path().read_text())["parts"]
    assert [part["kind"] for part in parts if part["bytes"] > 0]


def test_the_peak_is_compared_with_that_of_another_recording(look):
    seen = look("memory", run="leak")
    chosen = seen.frame.locator(".memory-compared select")
    chosen.select_option(index=1, timeout=PATIENCE)
    expect(seen.frame.locator(".memory-compared")).to_contain_text("No memory was recorded there.", timeout=PATIENCE)


def test_the_diagnosis_leads_to_the_memory(look):
    seen = look("diagnosis", run="leak")
    card = seen.frame.locator(".finding[data-cause=retained_graph]")
    expect(card).to_contain_text("The graphs of past steps are kept", timeout=PATIENCE)
    expect(card).to_contain_text("Worth fixing, about the memory")
    card.get_by_role("button", name="Show what fills the memory").click()
    expect(seen.frame.locator("#panel .memory-curve").first).to_be_visible(timeout=PATIENCE)
