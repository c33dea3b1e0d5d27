"""The timeline, in a real TensorBoard and a real Chromium."""

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.pages import PATIENCE, extent

PERFETTO = "https://ui.perfetto.dev/**"
VIEWER = """<script>
    addEventListener("message", ({ data, source }) => {
        if (data === "PING") source.postMessage("PONG", "*");
        else document.title = `${data.perfetto.title} ${data.perfetto.buffer.byteLength}`;
    });
</script>"""


def test_evidence_leads_to_its_place_on_the_timeline(look):
    seen = look("diagnosis")
    seen.frame.locator(".finding summary", has_text="Evidence").first.click()
    place = seen.frame.locator("button.link", has_text="for example").first
    label = place.locator("xpath=ancestor::th").inner_text().split("\n")[0]
    place.click()
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)
    expect(seen.frame.get_by_role("button", name="To the evidence")).to_be_visible()
    assert label
    assert seen.frame.get_by_role("tab", selected=True).inner_text() == "Timeline"
    seen.page.wait_for_function("location.hash.includes('p.tb_bottleneck.mark=')")
    assert seen.errors == []


def test_the_timeline_is_walked_by_keyboard_alone(look):
    seen = look("timeline")
    before = extent(seen)
    seen.frame.locator(".strip .canvas").focus()
    for key in ("+", "+", "ArrowRight"):
        seen.page.keyboard.press(key)
    assert extent(seen) != before
    seen.page.keyboard.press("0")
    assert extent(seen) != before
    seen.frame.locator("details.visible-blocks summary").focus()
    seen.page.keyboard.press("Enter")
    words = seen.frame.locator("details.visible-blocks table").inner_text()
    assert "Time spent in" in words
    assert "Waiting for data" in words


def test_the_address_brings_back_the_view_and_what_was_shown(look):
    seen = look("timeline")
    seen.frame.locator(".strip .canvas").focus()
    seen.page.keyboard.press("+")
    seen.page.keyboard.press("+")
    shown = extent(seen)
    seen.page.wait_for_function("location.hash.includes('p.tb_bottleneck.at=')")
    seen.page.wait_for_timeout(600)
    seen.page.reload()
    frame = seen.page.wait_for_selector("iframe[src*='tb_bottleneck']", timeout=PATIENCE).content_frame()
    expect(frame.locator(".controls .extent")).to_have_text(shown, timeout=PATIENCE, use_inner_text=True)


def test_pointing_names_what_is_there_and_dragging_moves(look):
    seen = look("timeline")
    canvas = seen.frame.locator("section.timeline canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 38)
    expect(seen.frame.locator(".tooltip")).to_contain_text("Step")
    seen.page.mouse.down()
    seen.page.mouse.up()
    expect(seen.frame.locator(".selected-block .full-name")).to_contain_text("Step")
    before = extent(seen)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + box["width"] / 3 - 120, box["y"] + 38, steps=5)
    seen.page.mouse.up()
    assert extent(seen) != before
    assert seen.errors == []


def test_closer_looks_fetch_finer_tiles_and_none_twice(look):
    """On a loaded machine tiles were once fetched twice. The first view was measured before the names were next to the
    canvas, and again with less width: requests of the first were cancelled, and repeated later. Here each view waits
    for its tiles, because tiles of a view that was left early may be requested again.
    """
    seen = look("diagnosis")
    requests = []  # that were not cancelled: of those the answer may have been on its way
    seen.page.on("requestfinished", lambda request: requests.append(request) if "timeline?" in request.url else None)
    seen.frame.get_by_role("tab", name="Timeline").click()
    canvas = seen.frame.locator(".strip .canvas")
    expect(canvas).to_have_attribute("aria-busy", "false", timeout=PATIENCE)
    canvas.focus()
    for key in ["+"] * 6 + ["-"] * 6:
        before = extent(seen)
        seen.page.keyboard.press(key)
        expect(seen.frame.locator(".controls .extent")).not_to_have_text(before, use_inner_text=True)
        expect(canvas).to_have_attribute("aria-busy", "false", timeout=PATIENCE)
    fetched = [request.url for request in requests if request.response().status == 200]
    assert len(fetched) > 2
    assert len(fetched) == len(set(fetched))


def test_a_slice_is_downloaded_as_a_trace(look):
    seen = look("timeline")
    with seen.page.expect_download() as downloading:
        seen.frame.get_by_role("button", name="Download slice").click()
    content = json.loads(Path(downloading.value.path()).read_text())
    assert content["traceEvents"]
    assert downloading.value.suggested_filename.endswith(".slice.json")


def test_perfetto_is_opened_by_a_click_only_and_handed_the_slice(look):
    """A local page replaces the viewer: nothing may leave this machine."""
    seen = look("timeline")
    assert not [url for url in seen.requests if "perfetto" in url]
    seen.page.context.route(PERFETTO, lambda route: route.fulfill(body=VIEWER, content_type="text/html"))
    with seen.page.context.expect_page() as opening:
        seen.frame.get_by_role("button", name="Open in Perfetto").click()
    opening.value.wait_for_function("document.title.includes('.slice')")
    assert int(opening.value.title().split()[-1]) > 1_000


def test_without_a_connection_perfetto_is_explained(look):
    seen = look("timeline", fresh=True)  # it changes the clock
    seen.page.context.route(PERFETTO, lambda route: route.abort())
    seen.page.clock.install()
    with seen.page.context.expect_page():
        seen.frame.get_by_role("button", name="Open in Perfetto").click()
    seen.page.wait_for_timeout(500)
    seen.page.clock.run_for(25_000)
    expect(seen.frame.locator(".controls .message")).to_contain_text("download the slice", timeout=30_000)
