"""Pages fit their window: no row has a gap, no text is cut, and the important columns are seen without scrolling."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.pages import FOR_ALL, PATIENCE, overhang
from tests.browser.stage import NAME

TABLE = "div.scrolled[aria-label='Trainings']"
CUT = "element => element.scrollWidth - element.clientWidth"


def overview(visit, address, width):
    seen = visit(address, "", viewport={"width": width, "height": 900})
    seen.frame.evaluate("location.hash")
    expect(seen.frame.locator("article.overview tbody tr").first).to_be_visible(timeout=PATIENCE)
    seen.frame.wait_for_function(
        "!/not analysed/.test(document.querySelector('.severities').textContent)", timeout=FOR_ALL
    )
    seen.page.wait_for_timeout(300)
    return seen


def test_a_link_of_two_lines_makes_no_gap_above_its_row(recorded_board, visit):
    """The baseline of a button with several lines is its last one, and moved the other cells down."""
    seen = overview(visit, recorded_board, 1400)
    tops = seen.frame.locator(TABLE).evaluate(
        """table => [...table.querySelectorAll("tbody tr")]
            .filter(row => row.querySelector("th .link").offsetHeight > 30)
            .flatMap(row => [...row.cells].filter(cell => cell.textContent).map(cell => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                return range.getClientRects()[0].top - row.getBoundingClientRect().top;
            }))"""
    )
    assert tops
    assert max(tops) < 16, tops


@pytest.mark.parametrize("width", [390, 768, 1000, 1280, 1400, 2560])
def test_the_rows_of_the_overview_fit_and_show_the_whole_action(recorded_board, visit, width):
    seen = overview(visit, recorded_board, width)
    table = seen.frame.locator(TABLE)
    assert table.evaluate(CUT) == 0
    actions = table.locator("td > small")
    assert actions.count() > 10
    assert actions.evaluate_all("all => all.filter(each => each.scrollHeight > each.clientHeight).length") == 0


def test_a_row_leads_with_name_gain_verdict_and_action_on_a_narrow_page(recorded_board, visit):
    seen = overview(visit, recorded_board, 390)
    row = seen.frame.locator(TABLE).locator("tbody tr").first
    parts = [row.locator(part) for part in ("th", "[data-column=gain]", "[data-column=verdict]", "[data-column=step]")]
    boxes = [box for part in parts if (box := part.bounding_box())]
    name, gain, verdict, step = boxes
    assert name["x"] < gain["x"] <= 390 - gain["width"]
    assert abs(name["y"] - gain["y"]) < 10
    assert name["y"] < verdict["y"] < step["y"]
    expect(parts[1]).to_contain_text(re.compile(r"\d"))
    expect(parts[2].locator("small")).not_to_be_empty()


def test_the_most_severe_trainings_come_first_and_of_those_the_ones_with_the_largest_gain(recorded_board, visit):
    seen = overview(visit, recorded_board, 1400)
    seen.frame.get_by_role("button", name=re.compile(r"^Show \d+ more$")).click()
    rows = seen.frame.locator(TABLE).locator("tbody tr")
    expect(rows.nth(40)).to_be_visible()
    severities = rows.locator("[data-column=severity] [role=img]").evaluate_all(
        "all => all.map(each => each.ariaLabel)"
    )
    order = ["Critical", "Worth fixing", "Small or unknown gain", "Little to gain", "Not known what would save time"]
    ranks = [min(order.index(severity), 3) for severity in severities]
    assert len(set(ranks)) > 1
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("width", [390, 1400])
def test_code_is_shown_whole_beside_its_button(look, width):
    seen = look("diagnosis", viewport={"width": width, "height": 900})
    boxes = seen.frame.locator(".code")
    expect(boxes.first).to_be_visible(timeout=PATIENCE)
    overlaps = boxes.evaluate_all(
        """all => all.map(box => {
            const [code, button] = [box.querySelector("pre"), box.querySelector("button")];
            const [one, other] = [code.getBoundingClientRect(), button.getBoundingClientRect()];
            return code.scrollWidth > code.clientWidth || (one.right > other.left && one.top < other.bottom);
        })"""
    )
    assert overlaps == [False] * boxes.count()


@pytest.mark.parametrize("width", [390, 768, 1400])
def test_the_hint_of_the_timeline_is_shown_whole(look, width):
    seen = look("timeline", viewport={"width": width, "height": 900})
    hidden = seen.frame.locator(".selected-block").evaluate("element => element.scrollHeight - element.clientHeight")
    assert hidden <= 0


def test_the_answer_the_bar_and_the_code_are_on_the_first_screen(staged_board, visit):
    """Everything else is folded; nothing of it is lost."""
    seen = visit(staged_board, quote(f"starved/{NAME}", safe=""), viewport={"width": 1400, "height": 900})
    expect(seen.frame.locator("section.account")).to_be_visible(timeout=PATIENCE)
    code = seen.frame.locator(".finding .code").first
    expect(code).to_be_visible(timeout=PATIENCE)
    (box,) = [code.bounding_box()]
    assert box["y"] + box["height"] <= 900
    assert seen.frame.evaluate("document.documentElement.scrollHeight") <= 1800
    checked = seen.frame.locator(".regimes")
    expect(checked).not_to_be_visible()
    seen.frame.locator("summary", has_text="What was checked").click()
    expect(checked).to_be_visible()


def with_own_lines(page):
    """Adds a long line of source and a patch with it to each finding of a report."""

    def answer(route):
        report = route.fetch().json()
        for finding in report.get("report", {}).get("findings", ()):
            for place in finding["where"]:
                place.update(source=[f"    values = [{'element, ' * 50}]"], source_begin=place["line"])
            finding["fix"]["patch"] = f"--- a.py\n+++ a.py\n@@ -1 +1 @@\n-{'x' * 400}\n+{'y, ' * 130}\n"
        route.fulfill(json=report)

    page.route("**/report?*", answer)


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_long_lines_of_source_and_of_a_patch_do_not_make_the_page_wider(staged_board, visit, width):
    size = {"width": width, "height": 900}
    seen = visit(staged_board, quote(f"starved/{NAME}", safe=""), before=with_own_lines, viewport=size)
    expect(seen.frame.locator(".places .source").first).to_be_visible(timeout=PATIENCE)
    expect(seen.frame.get_by_text("for patch -p0").first).to_be_visible()
    assert overhang(seen) == 0
