"""The tab in a real TensorBoard and a real Chromium."""

import json
import os
import re
from urllib.parse import quote, urlsplit

import pytest
from helpers.draw import drawn
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.boards import RECORDED
from tests.browser.pages import PATIENCE
from tests.browser.stage import NAME

# Of one rank, or of the job once it was judged: then the list opens with the rank that explains the verdict.
JOB_VERDICT = re.compile("Collectives|Make rank 1 as fast")
STAGED = quote(f"starved/{NAME}", safe="")
WAITING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""


def source_of(run: str) -> str:
    (trace,) = (RECORDED / run).glob("*.pt.trace.json.gz")
    return quote(f"{run}/{trace.name}", safe="")


def written(folder, name="host_1.17.pt.trace.json", content=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(drawn(WAITING, 1000)) if content is None else content)
    os.utime(folder / name, (0, 0))  # a young file that ends early may still be growing


def headline(visit):
    return visit.frame.locator(".headline")


def test_a_recorded_run_is_answered_with_verdict_account_and_fix(recorded_board, visit):
    seen = visit(recorded_board, source_of("loader_in_main_process/slow"))
    expect(headline(seen)).to_contain_text("waits for the next batch", timeout=PATIENCE)
    expect(seen.frame.locator("h1")).to_contain_text("Let worker processes create the batches: about")
    words = seen.text()
    assert "Waiting for data" in words
    assert "Batches are created in the main process" in words
    assert "num_workers" in words
    shares = seen.frame.locator("section.account table td.figure").all_inner_texts()
    assert shares
    assert seen.errors == []


def test_every_pair_is_in_the_list_with_its_verdict(recorded_board, visit):
    seen = visit(recorded_board)
    search = seen.frame.get_by_role("searchbox", name="Filter trainings")
    traces = sorted(RECORDED.rglob("*.pt.trace.json.gz"))
    assert len(traces) >= 6
    for trace in traces:
        search.fill(f"{trace.parent.relative_to(RECORDED)} {trace.name.partition('.pt.')[0]}")
        option = seen.frame.locator("nav.runs [role=option]").first
        expect(option.locator(".outcome .what")).to_be_visible(timeout=PATIENCE)


def test_no_request_leaves_the_origin(staged_board, visit):
    seen = visit(staged_board, STAGED, fresh=True)
    expect(headline(seen)).to_be_visible(timeout=PATIENCE)
    ours = [url for url in seen.requests if "tb_bottleneck" in url]
    assert ours
    origin = urlsplit(staged_board).netloc
    assert {urlsplit(url).netloc for url in ours} == {origin}


def test_the_choice_is_kept_in_the_address_and_by_a_reload(staged_board, visit):
    seen = visit(staged_board, STAGED)
    expect(headline(seen)).to_contain_text("waits for the next batch", timeout=PATIENCE)
    job = seen.frame.locator("nav.runs [role=option]", has_text="job")
    expect(job).to_have_count(1, timeout=PATIENCE)  # one for each rank until they are analysed
    job.click()
    expect(headline(seen)).to_contain_text(JOB_VERDICT, timeout=PATIENCE)
    seen.page.wait_for_function("/rank[01]/.test(location.hash)")
    address = seen.page.url
    seen.page.reload()
    assert seen.page.url == address
    frame = seen.page.wait_for_selector("iframe[src*='tb_bottleneck']", timeout=PATIENCE).content_frame()
    expect(frame.locator("nav.runs [aria-selected=true]")).to_contain_text("job", timeout=PATIENCE)


def test_the_list_is_worked_by_keyboard(staged_board, visit):
    seen = visit(staged_board, STAGED)
    chosen = seen.frame.locator("nav.runs [aria-selected=true]")
    expect(chosen).to_have_count(1, timeout=PATIENCE)
    before = chosen.get_attribute("id")
    seen.frame.locator("nav.runs [role=listbox]").focus()
    seen.page.keyboard.press("ArrowUp")
    seen.page.keyboard.press("Enter")
    expect(chosen).not_to_have_attribute("id", before or "", timeout=PATIENCE)


@pytest.mark.parametrize("width", [360, 768])
def test_a_phone_shows_the_answer_first_and_opens_the_list_by_a_button(staged_board, visit, width):
    seen = visit(staged_board, STAGED, viewport={"width": width, "height": 740})
    expect(headline(seen)).to_contain_text("waits for the next batch", timeout=PATIENCE)
    box = headline(seen).bounding_box()
    assert box["y"] + box["height"] < 370, "with TensorBoard's own bar, in the upper half of the screen"
    assert seen.frame.locator("nav.runs [role=option]").count() == 0
    button = seen.frame.get_by_role("button", name="Trainings, shown:")
    button.press("Enter")
    expect(seen.frame.locator("nav.runs [role=listbox]")).to_be_focused()
    seen.page.keyboard.press("Escape")
    expect(seen.frame.locator("nav.runs [role=listbox]")).to_have_count(0)
    expect(button).to_be_focused()
    button.click()
    assert headline(seen).bounding_box() == box, "the list opens over the page and moves nothing"
    seen.frame.get_by_role("searchbox", name="Filter trainings").fill("rank1")
    seen.frame.locator("nav.runs [role=option]", has_text="job").click()
    expect(headline(seen)).to_contain_text(JOB_VERDICT, timeout=PATIENCE)
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(button).to_contain_text("rank")
    assert violations(seen, False) == []


@pytest.mark.parametrize(("dark", "background"), [(False, "rgb(255, 255, 255)"), (True, "rgb(48, 48, 48)")])
def test_the_tab_follows_tensorboards_own_dark_mode(staged_board, visit, dark, background):
    seen = visit(staged_board, color_scheme="light" if dark else "dark")
    expect(seen.frame.locator("nav.runs")).to_be_visible(timeout=PATIENCE)
    seen.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
    expect(seen.frame.locator("body")).to_have_css("background-color", background)


def test_an_empty_logdir_says_what_is_looked_for(tmp_path, board, visit):
    seen = visit(board("--logdir", str(tmp_path)))
    expect(seen.frame.locator("body")).to_contain_text(".pt.trace.json", timeout=PATIENCE)
    assert str(tmp_path) in seen.text()
    assert "tensorboard_trace_handler" in seen.text()


def test_files_that_are_no_traces_say_why_and_spoil_no_other(staged_board, visit):
    for run, words in (("bad", "traceEvents"), ("short", "not enough data for a verdict")):
        seen = visit(staged_board, quote(f"{run}/{NAME}", safe=""))
        expect(seen.frame.locator("body")).to_contain_text(words, timeout=PATIENCE)
        assert "Why there is no verdict" in seen.frame.locator("#panel > :first-child").inner_text()


def test_names_are_shown_as_text_and_never_as_markup(staged_board, visit):
    seen = visit(staged_board, fresh=True)
    expect(seen.frame.locator("nav.runs")).to_contain_text("<img src=x", timeout=PATIENCE)
    assert seen.frame.locator("img").count() == 0
    assert seen.errors == []


def test_a_new_recording_appears_by_the_reload_button(tmp_path, board, visit):
    written(tmp_path / "first")
    seen = visit(board("--logdir", str(tmp_path)))
    expect(seen.frame.locator("nav.runs")).to_contain_text("first", timeout=PATIENCE)
    written(tmp_path / "second")
    # The server scans the disk at most every five seconds, so one press may be too early.
    for _ in range(30):
        seen.page.locator("button.reload-button").click()
        if "second" in seen.frame.locator("nav.runs").inner_text():
            return
        seen.page.wait_for_timeout(1000)
    raise AssertionError("the second recording never appeared")


@pytest.mark.parametrize(
    "flags",
    [
        ["--load_fast=false"],
        pytest.param(["--path_prefix", "/foo/bar"], marks=pytest.mark.nightly),
        pytest.param(["--logdir_spec"], marks=pytest.mark.nightly),
    ],
    ids=["python loader", "path prefix", "logdir spec"],
)
def test_it_works_however_tensorboard_was_started(tmp_path, board, visit, flags):
    written(tmp_path / "runs" / "one")
    if flags == ["--logdir_spec"]:
        address = board("--logdir_spec", f"named:{tmp_path / 'runs'}")
    else:
        address = board("--logdir", str(tmp_path / "runs"), *flags)
    seen = visit(address)
    expect(headline(seen)).to_contain_text("waits for the next batch", timeout=PATIENCE)
    if flags == ["--logdir_spec"]:
        assert "named/one" in seen.text()
