"""A series of recordings, and a recording under other conditions, in a real TensorBoard and a real Chromium."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.accessibility import violations
from tests.browser.boards import start_tensorboard
from tests.browser.pages import PATIENCE, Visit, overhang
from tests.browser.stage import FIRST_BAD_NIGHT, NAME, NIGHTS, UNTRUSTED_NAME, WORKERS, in_rows

UNTRUSTED_RUN = UNTRUSTED_NAME.replace("/", "")
SWEEP = [f"sweep/w{number}" for number in WORKERS]
HISTORY = [f"nights/night{night + 8}" for night in range(len(NIGHTS))]
ROWS = {"sweep": SWEEP, "history": HISTORY, "devices": ["a100", "h200"], "apart": ["sweep/w1", "other", UNTRUSTED_RUN]}
WIDTHS = (360, 768, 1280, 3840)
Open = Callable[..., Visit]


@pytest.fixture(scope="session")
def rows_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """TensorBoard with several series of recordings (stage.py)."""
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(in_rows(tmp_path_factory.mktemp("rows"))))


def spelt(*keys: str) -> str:
    """Returns a series in the form of the address."""
    return quote(",".join(quote(key, safe="") for key in keys), safe="")


@pytest.fixture
def row(rows_board: str, visit: Open) -> Open:
    """Opens these runs as a series, with the first one selected, and waits for the answer."""

    def open_row(*runs: str, more: tuple[str, ...] = (), **options: object) -> Visit:
        keys = [f"{run}/{NAME}" for run in runs]
        address = f"{quote(keys[0], safe='')}&p.tb_bottleneck.view=compare&p.tb_bottleneck.row={spelt(*keys, *more)}"
        seen = visit(rows_board, address, **options)
        expect(seen.frame.locator(".series h2.answer")).to_be_visible(timeout=PATIENCE)
        return seen

    return open_row


@pytest.fixture
def suppose(rows_board: str, visit: Open) -> Open:
    """Opens a run under these conditions; without conditions it waits for the form."""

    def open_what_if(run: str, conditions: str = "", drawn: str = ".what-if form", **options: object) -> Visit:
        supposed = f"&p.tb_bottleneck.if={quote(conditions, safe='')}" if conditions else ""
        address = f"{quote(f'{run}/{NAME}', safe='')}&p.tb_bottleneck.view=compare{supposed}"
        seen = visit(rows_board, address, **options)
        expect(seen.frame.locator(drawn).first).to_be_visible(timeout=PATIENCE)
        return seen

    return open_what_if


@pytest.fixture
def chooser(rows_board: str, visit: Open) -> Visit:
    """Opens the choice of runs to compare with the first run of the sweep."""
    seen = visit(rows_board, f"{quote(f'sweep/w1/{NAME}', safe='')}&p.tb_bottleneck.view=compare")
    expect(seen.frame.locator(".candidate").first).to_be_visible(timeout=PATIENCE)
    return seen


def box(seen: Visit, run: str) -> Locator:
    return seen.frame.locator(f"input[aria-label^='Select {run} ']")


def cells(seen: Visit, column: str) -> list[str]:
    """Returns a column of the table, by the class of its cells or `th`."""
    return seen.frame.locator(f".of-series tbody tr:not(.regression) > {column}").all_inner_texts()


# --- a series ---


def test_recordings_are_taken_by_keyboard_and_the_address_brings_the_row_back(chooser, rows_board, visit):
    for run in reversed(SWEEP[1:]):
        box(chooser, run).focus()
        box(chooser, run).press("Space")
    expect(chooser.frame.locator(".selection")).to_contain_text("4 recordings with this one.")
    chooser.frame.get_by_role("button", name="Compare as a series").press("Enter")
    expect(chooser.frame.locator(".series h2.answer")).to_contain_text("workers from 1 to 8", timeout=PATIENCE)
    fragment = urlsplit(chooser.page.url).fragment
    again = visit(rows_board, fragment.partition("p.tb_bottleneck.run=")[2])
    expect(again.frame.locator(".series h2.answer")).to_contain_text("workers from 1 to 8", timeout=PATIENCE)


def test_one_recording_makes_no_row_and_the_filter_takes_many_at_once(chooser):
    box(chooser, "sweep/w2").check()
    expect(chooser.frame.locator(".selection")).to_contain_text("Select one more for a series")
    assert chooser.frame.get_by_role("button", name="Compare as a series").count() == 0
    chooser.frame.locator("input[type=search]").nth(-1).fill("nights")
    chooser.frame.get_by_role("button", name="Select all 5").click()
    expect(chooser.frame.locator(".selection")).to_contain_text("7 recordings with this one.")


def test_a_sweep_is_a_curve_and_a_table_of_the_same(row):
    """With 1 worker a batch takes three times as long as the step, with 2 one and a half times, with 4 less than it."""
    seen = row(*SWEEP[::-1])
    drawing = seen.frame.locator(".series-points svg[role=img]")
    assert drawing.locator("text.value").all_text_contents() == ["1", "2", "4", "8"]
    assert drawing.locator("path.point").count() == len(SWEEP)
    assert "Waiting for data" in drawing.locator("text.regime").all_text_contents()
    assert [text.split()[0] for text in cells(seen, "th")] == ["1", "2", "4", "8"]
    assert cells(seen, ".speed")[0] == ""
    assert 1.8 < float(cells(seen, ".speed")[1].rstrip("\u00d7")) < 2.1
    assert seen.errors == []


def test_a_history_marks_the_run_since_which_it_is_slower(row):
    seen = row(*HISTORY)
    assert seen.frame.locator(".series-points svg[role=img]").count() == 0
    runs = seen.frame.locator(".of-series tbody tr").all_inner_texts()
    regression = next(place for place, text in enumerate(runs) if "Slower from here on" in text)
    assert regression == FIRST_BAD_NIGHT
    assert "Copies between host and device grew most" in runs[regression]
    assert f"night{FIRST_BAD_NIGHT + 8}" in runs[regression + 1]
    assert seen.frame.locator(".of-series .stacked").count() == len(HISTORY)


def test_the_order_of_a_history_is_reversed(row):
    seen = row(*HISTORY)
    seen.frame.get_by_role("button", name="Reverse the order").click()
    expect(seen.frame.locator(".of-series tbody th").first).to_contain_text("night12", timeout=PATIENCE)
    assert seen.frame.locator("tr.regression").count() == 0


def test_two_devices_are_settings_with_bars(row):
    seen = row("h200", "a100")
    expect(seen.frame.locator(".series-points h2")).to_contain_text("by device, longest first")
    assert {text.splitlines()[0] for text in cells(seen, "th")} == {"NVIDIA A100-SXM4-40GB", "NVIDIA H200"}
    assert seen.frame.locator(".of-series .stacked").count() == len(ROWS["devices"])
    expect(seen.frame.locator(".series h2.answer")).to_contain_text("By device")


def test_what_does_other_work_is_a_plain_table_that_says_why(row):
    seen = row(*ROWS["apart"])
    assert seen.frame.locator(".series-points svg, .stacked, .speed").count() == 0
    expect(seen.frame.locator(".notes h2")).to_have_text("Why there is no curve")
    expect(seen.frame.locator(".notes")).to_contain_text("does different work")


def test_a_recording_that_is_gone_is_left_out_and_named(row):
    seen = row(*SWEEP, more=(f"sweep/w16/{NAME}",))
    expect(seen.frame.locator(".series .notice")).to_contain_text(f"sweep/w16/{NAME}")
    assert len(cells(seen, "th")) == len(SWEEP)


def test_two_that_are_compared_become_three(chooser):
    chooser.frame.locator(".candidate", has_text="sweep/w2").click()
    expect(chooser.frame.locator("h2.answer")).to_be_visible(timeout=PATIENCE)
    chooser.frame.get_by_role("button", name="Add a third").click()
    expect(box(chooser, "sweep/w2")).to_be_checked()
    box(chooser, "sweep/w4").check()
    chooser.frame.get_by_role("button", name="Compare as a series").click()
    expect(chooser.frame.locator(".series h2.answer")).to_contain_text("workers from 1 to 4", timeout=PATIENCE)
    chooser.frame.get_by_role("button", name="Choose others").click()
    expect(box(chooser, "sweep/w4")).to_be_checked()


def test_a_run_of_the_row_leads_to_its_diagnosis(row):
    seen = row(*SWEEP)
    seen.frame.locator(".of-series button.link", has_text="sweep/w8").click()
    expect(seen.frame.locator("section.account")).to_be_visible(timeout=PATIENCE)
    assert "run=sweep%2Fw8" in seen.page.url
    seen.frame.get_by_role("tab", name="Compare").click()
    expect(seen.frame.locator(".series h2.answer")).to_be_visible(timeout=PATIENCE)


# --- under other conditions ---


def test_from_the_diagnosis_a_device_is_named_by_keyboard_and_the_address_brings_the_answer_back(rows_board, visit):
    seen = visit(rows_board, quote(f"sweep/w1/{NAME}", safe=""))
    link = seen.frame.get_by_role("button", name="Would another device")
    link.focus(timeout=PATIENCE)
    link.press("Enter")
    device = seen.frame.get_by_label("Device", exact=True)
    expect(seen.frame.locator("datalist option[value='H200 SXM']")).to_have_count(1, timeout=PATIENCE)
    device.focus()
    seen.page.keyboard.type("h200")
    seen.page.keyboard.press("Enter")
    answer = seen.frame.locator(".what-if h2.answer")
    expect(answer).to_contain_text("If it ran on an H200 SXM", timeout=PATIENCE)
    said = answer.inner_text()
    fragment = urlsplit(seen.page.url).fragment
    again = visit(rows_board, fragment.partition("p.tb_bottleneck.run=")[2])
    expect(again.frame.locator(".what-if h2.answer")).to_have_text(said, timeout=PATIENCE)
    assert again.frame.get_by_label("Device", exact=True).input_value() == "h200"


def test_a_faster_device_is_wasted_on_a_loader_and_the_first_fix_leads_to_its_card(suppose):
    seen = suppose("sweep/w1", "device=H200 SXM", ".fix-first li")
    first = seen.frame.locator(".fix-first li").first
    expect(first).to_contain_text("of the step after the change")
    first.locator("button").click()
    expect(seen.frame.locator("[data-cause='too_few_workers']")).to_be_focused(timeout=PATIENCE)


def test_more_workers_are_a_waterfall_from_now_to_then(suppose):
    seen = suppose("sweep/w1", "workers=4", "section.waterfall")
    expect(seen.frame.locator(".badge.tone-good")).to_contain_text("as fast")
    result = [row.locator("th, td").all_inner_texts() for row in seen.frame.locator(".waterfall tbody tr").all()]
    assert (result[0][0], result[-1][0]) == ("Now in total", "After in total")
    assert result[1][0] == "Waiting for data"
    assert result[1][4].startswith("\u2212")
    expect(seen.frame.locator(".notes").first).to_contain_text("10 % slower")


def test_several_things_are_changed_at_once_and_cleared(suppose):
    seen = suppose("sweep/w8")
    assert seen.frame.get_by_role("button", name="Predict").is_disabled()
    seen.frame.get_by_label("Device", exact=True).fill("NVIDIA H200")
    seen.frame.get_by_label("Link to the host").select_option(label="PCIe 5.0 \u00d7 16")
    seen.frame.get_by_role("button", name="Predict").click()
    expect(seen.frame.locator(".what-if h2.answer")).to_contain_text("PCIe 5.0 with 16 lanes", timeout=PATIENCE)
    assert quote("device=NVIDIA+H200&link=gen5x16", safe="") in seen.page.url
    seen.frame.get_by_role("button", name="Clear").click()
    expect(seen.frame.locator(".what-if h2.answer")).to_have_count(0)
    assert "p.tb_bottleneck.if=device" not in seen.page.url


def test_what_cannot_be_predicted_is_a_sentence(suppose):
    seen = suppose("sweep/w8", "workers=16", ".what-if h2.answer")
    expect(seen.frame.locator(".what-if h2.answer")).to_contain_text("No prediction:")
    assert seen.frame.locator(".what-if .waterfall, .what-if .facts").count() == 0


def test_an_unknown_device_gives_a_message_with_similar_names(suppose):
    seen = suppose("sweep/w8", "device=RTX 40900", ".request button")
    expect(seen.frame.locator(".request")).to_contain_text("did you mean")


def test_progress_is_shown_and_another_question_takes_the_place_of_one_that_is_not_answered(suppose):
    def never_done(route: Route) -> None:
        if "H100" not in route.request.url:
            return route.fallback()
        return route.fulfill(status=202, json={"state": "analysing", "progress": 0.4})

    def prepare(page: Page) -> None:
        page.route("**/what_if?*", never_done)

    seen = suppose("sweep/w8", "device=H100 SXM", ".request progress[value]", before=prepare)
    assert seen.frame.locator(".request progress").get_attribute("value") == "0.4"
    seen.frame.get_by_label("Device", exact=True).fill("H200 SXM")
    seen.frame.get_by_label("Device", exact=True).press("Enter")
    expect(seen.frame.locator(".what-if h2.answer")).to_contain_text("H200", timeout=PATIENCE)


# --- both ---


SUPPOSED = {
    "form": ("", ".what-if form"),
    "answer": ("device=H200&workers=4", "section.waterfall"),
    "unknown": ("device=RTX 40900", ".request button"),
}


@pytest.fixture(params=[*ROWS, *SUPPOSED, "chooser"])
def opened(request: pytest.FixtureRequest) -> Visit:
    """Opens each of the views."""
    view = request.param
    if view in ROWS:
        return request.getfixturevalue("row")(*ROWS[view])
    if view in SUPPOSED:
        return request.getfixturevalue("suppose")("sweep/w1", *SUPPOSED[view])
    seen: Visit = request.getfixturevalue("chooser")
    box(seen, "sweep/w2").check()
    return seen


def test_axe_finds_nothing_in_both_themes_and_nothing_scrolls_sideways(opened):
    for dark in (False, True):
        assert violations(opened, dark) == []
    for width in WIDTHS:
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.page.wait_for_timeout(300)
        assert overhang(opened) <= 0, width


def test_untrusted_names_are_text(row, suppose, rows_board):
    harmful = suppose("sweep/w1", f"device={quote(UNTRUSTED_NAME)}", ".request button", fresh=True)
    for seen in (row(*ROWS["apart"], fresh=True), harmful):
        assert UNTRUSTED_NAME[:20] in seen.text()
        assert seen.frame.locator("img, script[src='x']").count() == 0
        assert seen.errors == []
        assert all(urlsplit(one).netloc == urlsplit(rows_board).netloc for one in seen.requests)
