"""The review of a team in the tab: states, comments, commands to copy, and the ledger."""

import json
from contextlib import ExitStack
from urllib.parse import quote

import pytest
from helpers.draw import drawn
from playwright.sync_api import expect

from tb_bottleneck.review.notes import Action
from tb_bottleneck.review.store import NoteWriter
from tests.browser.accessibility import violations
from tests.browser.boards import start_tensorboard
from tests.browser.pages import PATIENCE, overhang
from tests.browser.stage import NAME, UNTRUSTED_NAME

SLOW = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""
CAUSE = "loader_in_main_process"


@pytest.fixture(scope="session")
def reviewed_board(tmp_path_factory):
    """Three runs: one fixed in another one, and one that is accepted."""
    folder = tmp_path_factory.mktemp("reviewed")
    for run, scale in (("slow", 1000), ("fast", 500), ("debug", 1100)):
        (folder / run).mkdir()
        (folder / run / NAME).write_text(json.dumps(drawn(SLOW, scale)))
    notes = NoteWriter(str(folder), "Ana")
    notes.write(Action.FIXED, "slow", cause=CAUSE, fixed_in="fast")
    notes.write(Action.ACCEPT, "debug", cause=CAUSE, text=f"only for debugging {UNTRUSTED_NAME}")
    notes.write(Action.COMMENT, "debug", cause=CAUSE, text="see the wiki")
    notes.close()
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(folder)), folder


def test_a_finding_shows_its_state_and_offers_the_commands(reviewed_board, visit):
    address, folder = reviewed_board
    seen = visit(
        address, quote(f"debug/{NAME}", safe=""), fresh=True, permissions=["clipboard-read", "clipboard-write"]
    )
    card = seen.frame.locator(f"[data-cause={CAUSE}] .review")
    expect(card).to_contain_text(f"Accepted by Ana: only for debugging {UNTRUSTED_NAME}", timeout=PATIENCE)
    expect(card).to_contain_text("see the wiki")
    card.locator("summary").click()
    card.get_by_role("button", name="Copy command: Fixed").click()
    expect(card).to_contain_text("Copied")
    copied = seen.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"tb-bottleneck review {folder} fixed debug/{NAME} --cause {CAUSE} --in "
    assert violations(seen, False) == violations(seen, True) == []
    assert seen.errors == []


def test_the_overview_filters_by_state_and_has_the_ledger(reviewed_board, visit):
    seen = visit(reviewed_board[0], viewport={"width": 390, "height": 800})
    overview = seen.frame.locator("article.overview")
    ledger = overview.get_by_role("table", name="Ledger of fixes")
    expect(ledger).to_contain_text("Miss", timeout=PATIENCE)
    expect(ledger).to_contain_text("2.00")
    assert overhang(seen) == 0
    names = overview.get_by_role("table", name="Trainings").locator("tbody th")
    overview.get_by_role("combobox", name="Findings").select_option("accepted")
    expect(names).to_have_count(1)
    expect(names).to_contain_text("accepted, 1 comment")
    overview.get_by_role("combobox", name="Findings").select_option("open")
    expect(names).to_have_count(1)
    expect(names).to_contain_text("fast")
    seen.page.set_viewport_size({"width": 1280, "height": 720})
    assert violations(seen, False) == violations(seen, True) == []
    ledger.get_by_role("button", name="slow → fast").click()
    expect(seen.frame.locator(".comparison h2.answer")).to_contain_text("2", timeout=PATIENCE)
