"""The breakdown: keys of the tree grid, the flame graph, the search, and its place in the address."""

from playwright.sync_api import expect

from tests.browser.pages import PATIENCE, VIEWS


def test_the_arrow_keys_open_and_close_rows(opened):
    seen = opened("tree")
    rows = seen.frame.locator(f"{VIEWS['tree']} tbody tr")
    expect(rows.first).to_be_visible(timeout=PATIENCE)
    rows.first.focus()
    count = rows.count()
    seen.page.keyboard.press("ArrowLeft")
    expect(rows).to_have_count(1)
    expect(rows.first).to_have_attribute("aria-expanded", "false")
    seen.page.keyboard.press("ArrowRight")
    expect(rows.first).to_have_attribute("aria-expanded", "true")
    assert 1 < rows.count() <= count
    seen.page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    seen.page.keyboard.press("Enter")
    expect(seen.frame.get_by_role("region", name="The chosen row")).to_be_visible()


def test_grouping_and_flame_graph_are_in_the_address(opened):
    seen = opened("tree")
    seen.frame.get_by_role("button", name="Operator", exact=True).click()
    seen.frame.get_by_role("button", name="Flame graph").click()
    expect(seen.frame.get_by_role("img", name="Flame graph. The table has the same content.")).to_be_visible(
        timeout=PATIENCE
    )
    assert "by%3Doperator" in seen.page.url.replace("=", "%3D")


def test_names_are_searched(opened):
    seen = opened("tree")
    seen.frame.get_by_role("button", name="Operator", exact=True).click()
    seen.frame.get_by_role("searchbox", name="Search names").fill("aten")
    expect(seen.frame.get_by_text("found,")).to_be_visible(timeout=PATIENCE)
