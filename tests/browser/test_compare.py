"""Comparison of two recordings in a real TensorBoard and a real Chromium."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import quote, urlsplit

import pytest
from comparison.drawn_runs import A100, H200, V100, repeated
from helpers.draw import drawn
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.boards import start_tensorboard
from tests.browser.pages import PATIENCE, Visit
from tests.browser.stage import NAME, UNTRUSTED_NAME, write

UNTRUSTED_RUN = UNTRUSTED_NAME.replace("/", "")
DRAWN = {
    "starved": (repeated(9, loader="######......", gpu="......####.."), A100),
    "fed": (repeated(9, workers="#.......", gpu="...####."), A100),
    "v100": (repeated(9, loader="####........", gpu="....########", sync=".....#######"), V100),
    "h200": (repeated(9, loader="########..", gpu="........##", sync=".........#"), H200),
    "tiny": ("step a\nop #", A100),
    UNTRUSTED_RUN: (repeated(9, loader="####........", op="....##......", gpu="....aabbccdd"), H200),
}


@pytest.fixture(scope="session")
def compared_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Slow and fast loading on one device, the same work on two devices, a run too short to judge, untrusted names."""
    folder = tmp_path_factory.mktemp("compared")
    for run, (drawing, device) in DRAWN.items():
        content = drawn(drawing, 1000.0, deviceProperties=[device])
        for event in content["traceEvents"]:
            if run == UNTRUSTED_RUN and not event["name"].startswith("ProfilerStep"):
                event["name"] += UNTRUSTED_NAME
        write(folder / run / NAME, json.dumps(content))
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(folder))


@pytest.fixture
def compare(compared_board: str, visit: Callable[..., Visit]) -> Callable[..., Visit]:
    """Opens run B's comparison with run A, and waits until it is drawn; without A it waits for the choice."""

    def open_comparison(b: str, a: str = "", **options: object) -> Visit:
        with_a = f"&p.tb_bottleneck.with={quote(f'{a}/{NAME}', safe='')}" if a else ""
        address = f"{quote(f'{b}/{NAME}', safe='')}&p.tb_bottleneck.view=compare{with_a}"
        seen = visit(compared_board, address, **options)
        drawn_once = ".comparison h2.answer" if a else "section.chooser .candidate"
        expect(seen.frame.locator(drawn_once).first).to_be_visible(timeout=PATIENCE)
        return seen

    return open_comparison


def rows(seen: Visit, section: str) -> list[list[str]]:
    return [
        [cell.inner_text() for cell in row.locator("th, td").all()]
        for row in seen.frame.locator(f"section.{section} tbody tr").all()
    ]


def test_a_recording_is_chosen_by_keyboard_and_the_address_brings_it_back(compare, compared_board, visit):
    seen = compare("fed")
    first = seen.frame.locator(".candidate").first
    first.focus()
    first.press("End")
    first.press("Home")
    while "starved" not in seen.frame.locator(":focus").inner_text():
        seen.frame.locator(":focus").press("ArrowDown")
    seen.frame.locator(":focus").press("Enter")
    expect(seen.frame.locator("h2.answer")).to_contain_text("1.50 times as fast", timeout=PATIENCE)
    fragment = urlsplit(seen.page.url).fragment
    again = visit(compared_board, fragment.partition("p.tb_bottleneck.run=")[2])
    expect(again.frame.locator("h2.answer")).to_contain_text("1.50 times as fast", timeout=PATIENCE)


def test_the_choice_is_one_row_for_tab_and_walked_with_the_arrow_keys(compare):
    """Dozens of recordings were twice as many tab stops before the part below them."""
    seen = compare("fed")
    first = seen.frame.locator(".candidate").first
    first.focus()
    first.press("ArrowDown")
    expect(seen.frame.locator(".candidate").nth(1)).to_be_focused()
    seen.page.keyboard.press("Shift+Tab")
    expect(seen.frame.locator(".candidates input").nth(1)).to_be_focused()
    for _ in range(2):
        seen.page.keyboard.press("Tab")
    assert seen.frame.locator(".candidates :focus").count() == 0


def test_the_waterfall_is_a_table_whose_changes_lead_from_a_to_b(compare):
    """step   aaaaaaaaaaaa  against  aaaaaaaa: the loader's six columns go, and three of waiting for workers come."""
    seen = compare("fed", "starved")
    result = rows(seen, "waterfall")
    assert result[0][0] == "A in total"
    assert result[0][2] == "12.0\u00a0ms"
    assert result[1][0] == "Waiting for data"
    assert result[1][4].startswith("\u2212")
    assert result[-1][3:] == ["8.00\u00a0ms", "\u22124.00\u00a0ms"]
    assert seen.frame.locator(".waterfall .delta.less").count() >= 1


def test_the_sides_change_places(compare):
    seen = compare("fed", "starved")
    seen.frame.get_by_role("button", name="Swap A and B").click()
    expect(seen.frame.locator("h2.answer")).to_contain_text("A is 1.50 times as fast as B", timeout=PATIENCE)
    assert "run=starved" in seen.page.url
    assert "with=fed" in seen.page.url


def test_a_cause_that_is_gone_leads_to_its_card_in_the_other_diagnosis(compare):
    seen = compare("fed", "starved")
    seen.frame.locator(".changed-causes button.link").first.click()
    card = seen.frame.locator("[data-cause='loader_in_main_process']")
    expect(card).to_be_focused(timeout=PATIENCE)
    assert "run=starved" in seen.page.url


def test_another_device_is_compared_with_its_expected_time(compare):
    seen = compare("h200", "v100")
    expected = seen.frame.locator("section.expected")
    expect(expected).to_contain_text("Whole step, expected")
    first = rows(seen, "expected")[0]
    assert first[0] == "Compute"
    assert first[2].endswith("\u00d7")
    shortfall = expected.locator(".shortfall > li").first
    expect(shortfall).to_contain_text("Batches are created in the main process")
    expect(shortfall.locator(".figure")).to_contain_text("+")


def test_no_expected_time_is_shown_for_one_device(compare):
    assert compare("fed", "starved").frame.locator("section.expected").count() == 0


def test_a_run_without_a_verdict_is_named_with_its_fix(compare):
    seen = compare("fed", "tiny")
    expect(seen.frame.locator("h2.answer")).to_have_text("A has no verdict, so there is nothing to compare.")
    expect(seen.frame.locator(".not-comparable pre").first).to_be_visible()
    assert seen.frame.locator(".waterfall").count() == 0


def test_an_address_that_names_what_is_gone_asks_anew(compared_board, visit):
    run = quote(f"fed/{NAME}", safe="")
    seen = visit(compared_board, f"{run}&p.tb_bottleneck.view=compare&p.tb_bottleneck.with=gone%2F{NAME}")
    expect(seen.frame.locator(".chooser .notice")).to_contain_text(f"gone/{NAME} cannot be compared", timeout=PATIENCE)


def test_a_shift_click_in_the_list_compares_with_what_is_shown(compared_board, visit):
    seen = visit(compared_board, quote(f"fed/{NAME}", safe=""))
    expect(seen.frame.locator("section.account")).to_be_visible(timeout=PATIENCE)
    seen.frame.locator(".option", has_text="starved").click(modifiers=["Shift"])
    expect(seen.frame.locator(".comparison h2.answer")).to_be_visible(timeout=PATIENCE)


def test_a_server_error_is_shown_and_the_request_repeated(compare):
    seen = compare("fed")
    seen.page.route("**/compare?*", lambda route: route.fulfill(status=500, content_type="text/plain", body="Broken."))
    seen.frame.locator(".candidate", has_text="starved").click()
    expect(seen.frame.locator(".request")).to_contain_text("Broken.", timeout=PATIENCE)
    expect(seen.frame.get_by_role("button", name="Choose another")).to_be_visible()
    seen.page.unroute("**/compare?*")
    seen.frame.get_by_role("button", name="Try again").click()
    expect(seen.frame.locator("h2.answer")).to_be_visible(timeout=PATIENCE)


def test_untrusted_names_are_text(compare, compared_board):
    for seen in (compare("h200", UNTRUSTED_RUN, fresh=True), compare("v100", fresh=True)):
        assert UNTRUSTED_RUN in seen.text()
        assert seen.frame.locator("img, script[src='x']").count() == 0
        assert seen.errors == []
        assert all(urlsplit(one).netloc == urlsplit(compared_board).netloc for one in seen.requests)


@pytest.mark.parametrize(
    "pair",
    [("h200", "v100"), ("fed", "tiny"), (UNTRUSTED_RUN, "v100"), ("fed", "")],
    ids=["both", "refused", "harmful", "choice"],
)
def test_axe_finds_nothing_in_both_themes_and_nothing_scrolls_sideways(compare, pair):
    seen = compare(*pair)
    for dark in (False, True):
        assert violations(seen, dark) == []
    for width in (360, 768, 1280, 3840):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.wait_for_timeout(300)
        over = seen.frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, width
