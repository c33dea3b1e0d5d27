"""What every view owes its users: access, width, safety, and answers that come late or never; in a real TensorBoard."""

import json
from urllib.parse import quote, urlsplit

import pytest
from draw import drawn
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, VIEWS, overhang, violations
from tests.browser.stage import HOSTILE, NAME, write


@pytest.mark.parametrize("view", ["diagnosis", *VIEWS])
def test_axe_finds_nothing_in_both_themes(opened, view):
    """Rules of WCAG 2 A and AA. axe-core is a development dependency of the tab and is put into the page from disk."""
    seen = opened(view)
    for dark in (False, True):
        assert violations(seen, dark) == []


@pytest.mark.parametrize("view", ["diagnosis", *VIEWS])
def test_no_view_scrolls_sideways(opened, view):
    seen = opened(view)
    for width in (360, 768, 1280, 3840):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.wait_for_timeout(300)
        assert overhang(seen) <= 0, width
    assert seen.errors == []


def test_the_tabs_are_walked_with_the_arrow_keys(look):
    seen = look("diagnosis")
    seen.frame.get_by_role("tab", name="Diagnosis").focus()
    seen.page.keyboard.press("ArrowRight")
    expect(seen.frame.get_by_role("tab", name="Timeline")).to_be_focused()
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)
    seen.page.keyboard.press("End")
    expect(seen.frame.get_by_role("tab", selected=True)).to_be_focused()


def test_names_that_mean_harm_are_text_in_every_view(look):
    seen = look("diagnosis", run=HOSTILE.replace("/", ""))
    for name, drawn_once in (
        ("Diagnosis", "section.account"),
        ("Timeline", VIEWS["timeline"]),
        ("What ran", VIEWS["tables"]),
    ):
        seen.frame.get_by_role("tab", name=name).click()
        expect(seen.frame.locator(drawn_once).first).to_be_visible(timeout=PATIENCE)
        if name == "Timeline":
            seen.frame.locator("details.seen summary").click()
        expect(seen.frame.locator("body")).to_contain_text("onerror", timeout=PATIENCE)
        assert seen.frame.locator("img").count() == 0
    assert seen.errors == []


def test_every_request_of_every_view_stays_on_the_origin(look, staged_board):
    seen = look("diagnosis")
    for name, view in (("Timeline", "timeline"), ("What ran", "tables"), ("Roofline", "roofline")):
        seen.frame.get_by_role("tab", name=name).click()
        expect(seen.frame.locator(VIEWS[view]).first).to_be_visible(timeout=PATIENCE)
    ours = [url for url in seen.requests if "tb_bottleneck" in url]
    assert {url.split("?")[0].rpartition("/")[2] for url in ours} >= {"runs", "report", "timeline", "tables"}
    assert {urlsplit(url).netloc for url in ours} == {urlsplit(staged_board).netloc}


def test_a_view_whose_server_is_gone_says_so_and_comes_back(look):
    seen = look("diagnosis")
    seen.page.route("**/tables?*", lambda route: route.abort())
    seen.frame.get_by_role("tab", name="What ran").click()
    expect(seen.frame.get_by_role("button", name="Ask again")).to_be_visible(timeout=PATIENCE)
    seen.page.unroute("**/tables?*")
    seen.frame.get_by_role("button", name="Ask again").click()
    expect(seen.frame.locator("section.sortable table").first).to_be_visible(timeout=PATIENCE)


def test_an_answer_that_was_overtaken_is_dropped(look):
    """The first run's tables come last: they must not be drawn under the second run's name."""
    seen = look("diagnosis")
    held = []
    seen.page.route("**/tables?*", lambda route: held.append(route) if not held else route.continue_())
    seen.frame.get_by_role("tab", name="What ran").click()
    seen.page.wait_for_timeout(500)
    seen.frame.locator("nav.runs [role=option]", has_text="rank0").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("rank0", timeout=PATIENCE)
    expect(seen.frame.locator("section.sortable table").first).to_be_visible(timeout=PATIENCE)
    before = seen.frame.locator("#panel").inner_text()
    held[0].continue_()
    seen.page.wait_for_timeout(1_000)
    assert seen.frame.locator("#panel").inner_text() == before


SHORT = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....abab......abab......abab..
"""
LONG = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
    loader  ####......####......####......####......####......
    gpu     ....abab......abab......abab......abab......abab..
"""


def test_a_run_that_grows_is_followed_and_its_view_made_anew(tmp_path, board, visit):
    """A recording is written again, with more steps, while its tables are looked at."""
    path = tmp_path / "run" / NAME
    write(path, json.dumps(drawn(SHORT, 1000)))
    seen = visit(board("--logdir", str(tmp_path)), quote(f"run/{NAME}", safe="") + "&p.tb_bottleneck.view=tables")
    kernels = seen.frame.locator("section.sortable").filter(has=seen.frame.get_by_role("heading", name="Kernels"))
    calls = kernels.locator("tbody tr").first.locator("td").nth(2)
    expect(calls).to_have_text("8", timeout=PATIENCE)
    path.write_text(json.dumps(drawn(LONG, 1000)))
    for _ in range(40):
        seen.page.locator("button.reload-button").click()
        seen.page.wait_for_timeout(1_000)
        if calls.count() and calls.inner_text() == "16":
            return
    raise AssertionError("the tables never changed")
