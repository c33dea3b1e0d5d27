"""Requirements of every view in a real TensorBoard: accessibility, width, safety, and late or missing answers."""

import json
from urllib.parse import quote, urlsplit

import pytest
from helpers.draw import drawn
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.pages import PATIENCE, VIEWS, overhang
from tests.browser.stage import NAME, RIGHT_TO_LEFT, UNTRUSTED_NAME, write


@pytest.mark.parametrize("view", ["diagnosis", *VIEWS])
def test_axe_finds_nothing_in_both_themes_and_no_view_scrolls_sideways(opened, view):
    """Rules of WCAG 2 A and AA. axe-core is a development dependency of the tab and is put into the page from disk."""
    seen = opened(view)
    for dark in (False, True):
        assert violations(seen, dark) == []
    for width in (360, 768, 1280, 3840):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.wait_for_timeout(300)
        assert overhang(seen) <= 0, width
    assert seen.errors == []


def test_the_tabs_are_walked_with_the_arrow_keys(look):
    seen = look("diagnosis")
    seen.frame.get_by_role("tab", name="Diagnosis").focus()
    seen.page.keyboard.press("ArrowRight")
    expect(seen.frame.get_by_role("tab", name="Where")).to_be_focused()
    seen.page.keyboard.press("ArrowRight")
    expect(seen.frame.get_by_role("tab", name="Timeline")).to_be_focused()
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)
    seen.page.keyboard.press("End")
    expect(seen.frame.get_by_role("tab", selected=True)).to_be_focused()


def test_the_focus_stays_in_the_view_when_what_had_it_goes_away(look):
    """A press on evidence opens the timeline and removes the button: the next Tab began at the top of the page."""
    seen = look("diagnosis")
    seen.frame.locator(".finding summary", has_text="Evidence").first.click()
    seen.frame.locator("button.link", has_text="for example").first.press("Enter")
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)
    expect(seen.frame.locator("#panel")).to_be_focused()
    seen.page.keyboard.press("Tab")
    expect(seen.frame.get_by_role("button", name="Earlier")).to_be_focused()


def test_what_opens_over_the_page_closes_when_the_focus_leaves_it(look):
    seen = look("diagnosis", viewport={"width": 700, "height": 740})
    seen.frame.locator(".share summary").press("Enter")
    menu = seen.frame.locator(".share .menu")
    expect(menu).to_be_visible()
    for _ in range(5):
        seen.page.keyboard.press("Tab")
    expect(menu).to_be_hidden()
    seen.frame.get_by_role("button", name="Trainings, shown:").press("Enter")
    listbox = seen.frame.locator("nav.runs [role=listbox]")
    expect(listbox).to_be_focused()
    seen.page.keyboard.press("Tab")
    expect(listbox).to_have_count(0)
    seen.frame.locator(".share summary").press("Enter")
    menu.get_by_role("button", name="Copy the address").press("Enter")
    expect(seen.frame.locator(".share summary")).to_be_focused()


def test_untrusted_names_are_text_in_every_view(look):
    seen = look("diagnosis", run=UNTRUSTED_NAME.replace("/", ""), fresh=True)
    for name, drawn_once in (
        ("Diagnosis", "section.account"),
        ("Timeline", VIEWS["timeline"]),
        ("Where", VIEWS["tree"]),
    ):
        seen.frame.get_by_role("tab", name=name).click()
        expect(seen.frame.locator(drawn_once).first).to_be_visible(timeout=PATIENCE)
        if name == "Timeline":
            seen.frame.locator("details.visible-blocks summary").click()
        expect(seen.frame.locator("body")).to_contain_text("onerror", timeout=PATIENCE)
        assert seen.frame.locator("img").count() == 0
    assert seen.errors == []


def test_names_from_right_to_left_do_not_turn_the_run_and_its_file_around(look):
    seen = look("diagnosis", run=RIGHT_TO_LEFT, source=f"{RIGHT_TO_LEFT}_1.17.pt.trace.json")
    run, source = (seen.frame.locator(".headline .path bdi").nth(place).bounding_box() for place in (0, 1))
    assert run["x"] + run["width"] < source["x"]


@pytest.mark.parametrize("width", [1280, 2560])
def test_what_stands_over_the_views_is_low_and_does_not_move_sideways(look, width):
    """The diagnosis was narrower than the other views, whose content began 400 px below the top."""
    seen = look("diagnosis", viewport={"width": width, "height": 900})
    before = seen.frame.locator(".share summary").bounding_box()
    top = seen.frame.locator("article").bounding_box()["y"]
    seen.frame.get_by_role("tab", name="Where").click()
    expect(seen.frame.locator(VIEWS["tree"]).first).to_be_visible(timeout=PATIENCE)
    assert seen.frame.locator(".share summary").bounding_box()["x"] == before["x"]
    assert seen.frame.get_by_role("tabpanel").bounding_box()["y"] - top <= 80


def test_a_row_says_what_it_is_about_when_its_figures_are_scrolled_to(look):
    seen = look("tree", viewport={"width": 360, "height": 900})
    table = seen.frame.locator(".scrolled").first
    name = table.locator("tbody th").first
    before = name.bounding_box()
    table.evaluate("element => { element.scrollLeft = 9999 }")
    seen.page.wait_for_timeout(200)
    assert name.bounding_box()["x"] == before["x"]
    assert before["width"] < 200, "there is room for the figures beside it"


def test_every_request_of_every_view_stays_on_the_origin(look, staged_board):
    seen = look("diagnosis", fresh=True)
    for name, view in (("Timeline", "timeline"), ("Where", "tree")):
        seen.frame.get_by_role("tab", name=name).click()
        expect(seen.frame.locator(VIEWS[view]).first).to_be_visible(timeout=PATIENCE)
    ours = [url for url in seen.requests if "tb_bottleneck" in url]
    assert {url.split("?")[0].rpartition("/")[2] for url in ours} >= {"runs", "report", "timeline", "tree"}
    assert {urlsplit(url).netloc for url in ours} == {urlsplit(staged_board).netloc}


def test_a_view_whose_server_is_gone_says_so_and_comes_back(look):
    seen = look("diagnosis")
    seen.page.route("**/tree?*", lambda route: route.abort())
    seen.frame.get_by_role("tab", name="Where").click()
    expect(seen.frame.get_by_role("button", name="Try again")).to_be_visible(timeout=PATIENCE)
    seen.page.unroute("**/tree?*")
    seen.frame.get_by_role("button", name="Try again").click()
    expect(seen.frame.locator("#panel .tree-table").first).to_be_visible(timeout=PATIENCE)


def final_text(seen) -> str:
    """The text of the view once a second has passed without a change: some of its parts are fetched after others."""
    text = ""
    while text != (text := seen.frame.locator("#panel").inner_text()):
        seen.page.wait_for_timeout(1_000)
    return text


def test_an_answer_that_was_overtaken_is_dropped(look):
    """The first run's tree arrives last: they must not be drawn under the second run's name."""
    seen = look("diagnosis")
    held = []
    seen.page.route("**/tree?*", lambda route: held.append(route) if not held else route.continue_())
    seen.frame.get_by_role("tab", name="Where").click()
    seen.page.wait_for_timeout(500)
    seen.frame.locator("nav.runs [role=option]", has_text="reads").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("reads", timeout=PATIENCE)
    expect(seen.frame.locator("#panel .tree-table").first).to_be_visible(timeout=PATIENCE)
    before = final_text(seen)
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
    """A recording is written again, with more steps, while its tree is open."""
    path = tmp_path / "run" / NAME
    write(path, json.dumps(drawn(SHORT, 1000)))
    seen = visit(board("--logdir", str(tmp_path)), quote(f"run/{NAME}", safe="") + "&p.tb_bottleneck.view=tree")
    means = seen.frame.locator(".breakdown .extent")
    expect(means).to_contain_text("mean of 2 steps", timeout=PATIENCE)
    path.write_text(json.dumps(drawn(LONG, 1000)))
    for _ in range(40):
        seen.page.locator("button.reload-button").click()
        seen.page.wait_for_timeout(1_000)
        if means.count() and "mean of 4 steps" in means.inner_text():
            return
    raise AssertionError("the tree never changed")
