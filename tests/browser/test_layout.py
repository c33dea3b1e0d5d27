"""Pages fit their window: no row has a gap, no text is cut, and the important columns are seen without scrolling."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.pages import PATIENCE
from tests.browser.stage import NAME
from tests.browser.test_review import reviewed_board  # noqa: F401  # a fixture

TABLE = "div.scrolled[aria-label='Trainings']"
CUT = "element => element.scrollWidth - element.clientWidth"


def overview(visit, address, width):
    seen = visit(address, "", viewport={"width": width, "height": 900})
    seen.frame.evaluate("location.hash")
    expect(seen.frame.locator("article.overview tbody tr").first).to_be_visible(timeout=PATIENCE)
    seen.frame.wait_for_function(
        "!/not analysed/.test(document.querySelector('.severities').textContent)", timeout=PATIENCE
    )
    seen.page.wait_for_timeout(300)
    return seen


def test_a_link_of_two_lines_makes_no_gap_above_its_row(reviewed_board, visit):  # noqa: F811
    """The baseline of a button with several lines is its last one, and moved the other cells down."""
    seen = overview(visit, reviewed_board[0], 390)
    row = seen.frame.locator("table[aria-label='Ledger of fixes'] tbody tr").first
    expect(row).to_be_visible(timeout=PATIENCE)
    tops = row.evaluate(
        """row => [...row.cells].map(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getClientRects()[0].top - row.getBoundingClientRect().top;
        })"""
    )
    assert max(tops) < 16, tops


def test_all_columns_of_the_overview_fit_beside_the_list(recorded_board, visit):
    seen = overview(visit, recorded_board, 1400)
    assert seen.frame.locator(TABLE).evaluate(CUT) == 0


def test_the_figures_are_seen_first_on_a_narrow_page(recorded_board, visit):
    seen = overview(visit, recorded_board, 390)
    region = seen.frame.locator(TABLE)
    edge = region.evaluate("element => element.getBoundingClientRect().right")
    for title in ("Gain left", "Step"):
        box = region.get_by_role("columnheader", name=title, exact=False).first.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= edge + 1, title


@pytest.mark.parametrize("width", [390, 768, 1400])
def test_the_hint_of_the_timeline_is_shown_whole(look, width):
    seen = look("timeline", viewport={"width": width, "height": 900})
    hidden = seen.frame.locator(".selected-block").evaluate("element => element.scrollHeight - element.clientHeight")
    assert hidden <= 0


def test_a_wide_page_has_no_empty_column(staged_board, visit):
    """What to change is the longest part; the rest follows the account in the column beside it."""
    seen = visit(staged_board, quote(f"starved/{NAME}", safe=""), viewport={"width": 2560, "height": 1440})
    halves = seen.frame.locator(".halves > .half")
    expect(seen.frame.locator("section.account")).to_be_visible(timeout=PATIENCE)
    expect(seen.frame.locator(".regimes")).to_be_visible(timeout=PATIENCE)
    account, findings, rest = (halves.nth(number).bounding_box() for number in range(3))
    assert account
    assert findings
    assert rest
    assert findings["x"] > account["x"] + account["width"]
    assert rest["x"] == account["x"]
    assert 0 <= rest["y"] - (account["y"] + account["height"]) < 60
    seen.page.set_viewport_size({"width": 1000, "height": 900})
    expect(seen.frame.locator(".halves")).to_be_visible()
    tops = [box["y"] for number in range(3) if (box := halves.nth(number).bounding_box())]
    assert tops == sorted(tops)
