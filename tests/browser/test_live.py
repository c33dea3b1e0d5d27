"""Telemetry of a run over time, in a real TensorBoard and a real Chromium."""

from playwright.sync_api import expect

from tests.browser.pages import PATIENCE, extent
from tests.browser.stage import EVENTS, telemetry


def test_telemetry_is_drawn_with_its_phases_and_follows(watched):
    seen = watched(telemetry())
    words = seen.frame.locator("section.telemetry").inner_text()
    for expected in ("Step time", "Power", "throttled by the power limit", "Waiting for data", "PCIe", "Live"):
        assert expected in words
    assert seen.frame.locator(".chart canvas").count() == 6
    seen.frame.locator("section.telemetry > details summary").click()
    expect(seen.frame.locator(".data-loss")).to_contain_text("Hopper")
    with seen.page.expect_request("**/telemetry?*since=*"):
        pass  # only what was added is asked for
    assert seen.errors == []


def test_a_phase_of_the_run_leads_to_its_telemetry_in_detail(look):
    """The phases: healthy, waiting for data, healthy, limited by power. The second one loses the most time."""
    seen = look("diagnosis", run="watched", source=EVENTS)
    phases = seen.frame.locator("section.phases")
    expect(phases).to_contain_text("Waiting for data", timeout=PATIENCE)
    seen.frame.locator("summary", has_text="The run over time").click()
    assert phases.locator("tbody tr").count() >= 3
    lost = phases.locator("tbody tr", has_text="Critical")
    assert lost.locator("th").inner_text().startswith(("4:", "5:"))
    with seen.page.expect_request("**/telemetry?*&until=*"):
        lost.locator("button").click()
    expect(seen.frame.locator("section.telemetry")).to_be_visible(timeout=PATIENCE)
    assert seen.frame.get_by_role("tab", selected=True).inner_text() == "Over time"
    shown = extent(seen)
    seen.page.wait_for_function("location.hash.includes('p.tb_bottleneck.at=')")
    seen.page.reload()
    frame = seen.page.wait_for_selector("iframe[src*='tb_bottleneck']", timeout=PATIENCE).content_frame()
    expect(frame.locator(".controls .extent")).to_have_text(shown, timeout=PATIENCE, use_inner_text=True)
    assert seen.errors == []


def test_readings_are_walked_by_keyboard_alone(look):
    seen = look("live", run="watched", source=EVENTS)
    whole = extent(seen)
    seen.frame.locator(".charts").focus()
    for key in ("+", "+", "ArrowRight"):
        before = extent(seen)
        seen.page.keyboard.press(key)
        expect(seen.frame.locator(".controls .extent")).not_to_have_text(before, use_inner_text=True)
    seen.page.keyboard.press("0")
    expect(seen.frame.locator(".controls .extent")).to_have_text(whole, use_inner_text=True)
    assert seen.errors == []


def test_a_hidden_tab_asks_for_no_telemetry(watched):
    seen = watched(telemetry(), fresh=True)  # it changes TensorBoard's page
    seen.page.evaluate("document.querySelector('iframe[src*=tb_bottleneck]').style.height = '0'")
    seen.page.evaluate("document.querySelector('iframe[src*=tb_bottleneck]').style.maxHeight = '0'")
    seen.page.wait_for_timeout(500)
    before = len([url for url in seen.requests if "telemetry" in url])
    seen.page.wait_for_timeout(2_500)  # a visible tab asks every two seconds
    assert len([url for url in seen.requests if "telemetry" in url]) == before
