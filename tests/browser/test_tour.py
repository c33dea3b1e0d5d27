"""The tour of the demo: six steps in the views that they are about, and an end that holds."""

from urllib.parse import quote

from playwright.sync_api import expect

from demo.guide import tour_address
from tests.browser.accessibility import violations
from tests.browser.boards import RECORDED
from tests.browser.pages import PATIENCE

TOUR = tour_address(RECORDED, "").partition("p.tb_bottleneck.run=")[2]


def test_the_tour_leads_through_the_views_and_is_dismissed_for_good(recorded_board, visit):
    seen = visit(recorded_board, TOUR, fresh=True)
    tour = seen.frame.get_by_role("region", name="Tour of a recording")
    expect(tour).to_be_visible(timeout=PATIENCE)
    assert tour.locator("ol > li").count() == 6
    for title, selector in (
        ("The account", "#panel .account.in-tour"),
        ("The line", "#panel .places.in-tour"),
        ("The gain", "#panel .cost-and-gain.in-tour"),
    ):
        tour.get_by_role("button", name="Next").click()
        expect(tour.locator("[aria-current=step]")).to_contain_text(title)
        expect(seen.frame.locator(selector)).to_be_visible(timeout=PATIENCE)
    assert violations(seen, dark=False) == violations(seen, dark=True) == []
    tour.get_by_role("button", name="Next").click()
    expect(seen.frame.get_by_role("tab", selected=True)).to_have_text("Compare", timeout=PATIENCE)
    tour.get_by_role("button", name="Next").click()
    expect(seen.frame.get_by_role("tab", selected=True)).to_have_text("What if", timeout=PATIENCE)
    tour.get_by_role("button", name="End the tour").click()
    expect(tour).to_have_count(0)
    assert seen.errors == []

    seen.page.goto(f"{recorded_board}/#tb_bottleneck&p.tb_bottleneck.run={TOUR}")
    seen.page.reload()
    frame = seen.page.wait_for_selector("iframe[src*='tb_bottleneck']", timeout=PATIENCE).content_frame()
    expect(frame.locator(".headline h1")).to_be_visible(timeout=PATIENCE)
    assert frame.get_by_role("region", name="Tour of a recording").count() == 0


def test_without_the_address_there_is_no_tour(recorded_board, visit):
    seen = visit(recorded_board, quote("checkpointing", safe=""))
    expect(seen.frame.locator("nav.runs")).to_be_visible(timeout=PATIENCE)
    assert seen.frame.get_by_role("region", name="Tour of a recording").count() == 0
