"""The views beyond the diagnosis, in a real TensorBoard, seen by a real Chromium."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from draw import drawn
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Visit, start_tensorboard
from tests.browser.stage import HOSTILE, NAME, stage, telemetry, write

PATIENCE = 60_000  # ms
AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
PERFETTO = "https://ui.perfetto.dev/**"
VIEWER = """<script>
    addEventListener("message", ({ data, source }) => {
        if (data === "PING") source.postMessage("PONG", "*");
        else document.title = `${data.perfetto.title} ${data.perfetto.buffer.byteLength}`;
    });
</script>"""
VIEWS = {
    "timeline": "section.timeline canvas",
    "tables": "section.sortable table",
    "roofline": "#panel section",
    "ranks": "section.ranks table",
    "live": "section.live",
}


@pytest.fixture(scope="session")
def staged_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        yield start_tensorboard(stack, "--logdir", str(stage(tmp_path_factory.mktemp("stage"))))


@pytest.fixture
def look(staged_board: str, visit: Callable[..., Visit]) -> Callable[..., Visit]:
    """Opens a view of a run, and waits until it is drawn."""

    def open_view(view: str, run: str = "starved", source: str = NAME, **options: object) -> Visit:
        address = quote(f"{run}/{source}", safe="") + (f"&p.tb_bottleneck.view={view}" if view != "diagnosis" else "")
        seen = visit(staged_board, address, **options)
        expect(seen.frame.locator(VIEWS.get(view, "section.account")).first).to_be_visible(timeout=PATIENCE)
        return seen

    return open_view


@pytest.fixture
def watched(chromium: Browser, staged_board: str) -> Iterator[Callable[[dict[str, object]], Visit]]:
    """The live view over a made-up answer: the monitor is another process's business."""
    with ExitStack() as stack:

        def open_live(answer: dict[str, object], **options: object) -> Visit:
            context = chromium.new_context(viewport={"width": 1200, "height": 1400}, **options)
            stack.callback(context.close)
            page = context.new_page()
            seen = Visit(page, page.main_frame)
            page.on("pageerror", lambda error: seen.errors.append(str(error)))
            page.on("request", lambda request: seen.requests.append(request.url))

            def runs(route):
                content = route.fetch().json()
                for entry in content["runs"]:
                    entry |= {"witness": "telemetry", "live": True}
                route.fulfill(json=content)

            page.route("**/tb_bottleneck/runs", runs)
            page.route("**/telemetry?*", lambda route: route.fulfill(json=answer))
            run = quote(f"starved/{NAME}", safe="")
            page.goto(f"{staged_board}/#tb_bottleneck&p.tb_bottleneck.run={run}&p.tb_bottleneck.view=live")
            element = page.wait_for_selector("iframe[src*='tb_bottleneck']", state="attached", timeout=30_000)
            seen.frame = element.content_frame()
            expect(seen.frame.locator("section.live")).to_be_visible(timeout=PATIENCE)
            return seen

        yield open_live


def overhang(seen: Visit) -> int:
    return int(seen.frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def extent(seen: Visit) -> str:
    return seen.frame.locator(".controls .extent").inner_text()


# --- The timeline ---


def test_evidence_leads_to_its_place_on_the_timeline(look):
    seen = look("diagnosis")
    place = seen.frame.locator("button.link", has_text="for example").first
    label = place.locator("xpath=ancestor::th").inner_text().split("\n")[0]
    place.click()
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)
    expect(seen.frame.get_by_role("button", name="To the evidence")).to_be_visible()
    assert label
    assert seen.frame.get_by_role("tab", selected=True).inner_text() == "Timeline"
    seen.page.wait_for_function("location.hash.includes('p.tb_bottleneck.mark=')")
    assert seen.errors == []


def test_the_timeline_is_walked_by_keyboard_alone(look):
    seen = look("timeline")
    before = extent(seen)
    seen.frame.locator(".strip .canvas").focus()
    for key in ("+", "+", "ArrowRight"):
        seen.page.keyboard.press(key)
    assert extent(seen) != before
    seen.page.keyboard.press("0")
    assert extent(seen) != before
    seen.frame.locator("details.seen summary").focus()
    seen.page.keyboard.press("Enter")
    words = seen.frame.locator("details.seen table").inner_text()
    assert "Who owns the time" in words
    assert "Waiting for data" in words


def test_the_address_brings_back_the_view_and_what_was_shown(look):
    seen = look("timeline")
    seen.frame.locator(".strip .canvas").focus()
    seen.page.keyboard.press("+")
    seen.page.keyboard.press("+")
    shown = extent(seen)
    seen.page.wait_for_function("location.hash.includes('p.tb_bottleneck.at=')")
    seen.page.wait_for_timeout(600)
    seen.page.reload()
    frame = seen.page.wait_for_selector("iframe[src*='tb_bottleneck']", timeout=PATIENCE).content_frame()
    expect(frame.locator(".controls .extent")).to_have_text(shown, timeout=PATIENCE, use_inner_text=True)


def test_pointing_names_what_is_there_and_dragging_moves(look):
    seen = look("timeline")
    canvas = seen.frame.locator("section.timeline canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 38)
    expect(seen.frame.locator(".tip")).to_contain_text("Step")
    seen.page.mouse.down()
    seen.page.mouse.up()
    expect(seen.frame.locator(".about .whole-name")).to_contain_text("Step")
    before = extent(seen)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + box["width"] / 3 - 120, box["y"] + 38, steps=5)
    seen.page.mouse.up()
    assert extent(seen) != before
    assert seen.errors == []


def test_closer_looks_fetch_finer_tiles_and_none_twice(look):
    seen = look("timeline")
    fetched: list[str] = []
    seen.page.on("requestfinished", lambda request: fetched.append(request.url) if "timeline?" in request.url else None)
    seen.frame.locator(".strip .canvas").focus()
    for _ in range(6):
        seen.page.keyboard.press("+")
    seen.page.wait_for_timeout(1_500)
    for _ in range(6):
        seen.page.keyboard.press("-")
        seen.page.wait_for_timeout(100)
    seen.page.wait_for_timeout(800)
    assert len(fetched) > 2
    assert len(fetched) == len(set(fetched))


def test_a_slice_is_downloaded_as_a_trace(look):
    seen = look("timeline")
    with seen.page.expect_download() as downloading:
        seen.frame.get_by_role("button", name="Download slice").click()
    content = json.loads(Path(downloading.value.path()).read_text())
    assert content["traceEvents"]
    assert downloading.value.suggested_filename.endswith(".slice.json")


def test_perfetto_is_opened_by_a_click_only_and_handed_the_slice(look):
    """The viewer is played by a page of ours: nothing may leave this machine."""
    seen = look("timeline")
    assert not [url for url in seen.requests if "perfetto" in url]
    seen.page.context.route(PERFETTO, lambda route: route.fulfill(body=VIEWER, content_type="text/html"))
    with seen.page.context.expect_page() as opening:
        seen.frame.get_by_role("button", name="Open in Perfetto").click()
    opening.value.wait_for_function("document.title.includes('.slice')")
    assert int(opening.value.title().split()[-1]) > 1_000


def test_without_a_connection_perfetto_is_explained(look):
    seen = look("timeline")
    seen.page.context.route(PERFETTO, lambda route: route.abort())
    seen.page.clock.install()
    with seen.page.context.expect_page():
        seen.frame.get_by_role("button", name="Open in Perfetto").click()
    seen.page.wait_for_timeout(500)
    seen.page.clock.run_for(25_000)
    expect(seen.frame.locator(".controls .said")).to_contain_text("download the slice", timeout=30_000)


# --- Tables, roofline, ranks ---


def test_tables_are_sorted_and_searched(look):
    seen = look("tables")
    kernels = seen.frame.locator("section.sortable").filter(has=seen.frame.get_by_role("heading", name="Kernels"))
    names = kernels.locator("tbody th")
    first = names.first.inner_text()
    kernels.get_by_role("button", name=re.compile("^Mean")).click()
    kernels.get_by_role("button", name=re.compile("^Mean")).click()
    expect(kernels.locator("th[aria-sort=ascending]")).to_have_count(1)
    search = kernels.locator("input[type=search]")
    if search.count():
        search.fill("no kernel is called like this")
        expect(names).to_have_count(0)
        search.fill("")
    assert first
    names.first.locator("button").click()
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)


def test_waits_are_listed_by_their_place(look):
    seen = look("tables", run="reads")
    waits = seen.frame.locator("section.sortable").filter(
        has=seen.frame.get_by_role("heading", name="Waits for the device")
    )
    expect(waits.locator("tbody tr").first).to_contain_text("a value to come to the host")


def test_each_step_has_its_account_and_leads_to_the_timeline(look):
    seen = look("tables", run="checkpoints")
    columns = seen.frame.locator(".columns-chart button")
    assert columns.count() > 1
    columns.nth(1).hover()
    expect(seen.frame.locator(".step-account .reading")).to_contain_text("Step 2")
    columns.nth(1).click()
    expect(seen.frame.locator("section.timeline canvas")).to_be_visible(timeout=PATIENCE)


def test_a_roofline_without_shapes_says_what_to_record(look):
    seen = look("roofline")
    expect(seen.frame.locator("#panel")).to_contain_text("record_shapes=True")


def test_ranks_stand_side_by_side_and_are_one_click_away(look):
    seen = look("ranks", run="job", source="rank0.17.pt.trace.json")
    rows = seen.frame.locator("section.ranks tbody tr")
    expect(rows).to_have_count(3, timeout=PATIENCE)
    expect(seen.frame.locator(".straggler")).to_have_count(1)
    expect(rows.nth(1)).to_contain_text("the others wait for it")
    rows.nth(1).locator("button").click()
    expect(seen.frame.locator(".headline .path")).to_contain_text("rank1", timeout=PATIENCE)


# --- Telemetry ---


def test_telemetry_is_drawn_with_its_stretches_and_follows(watched):
    seen = watched(telemetry())
    words = seen.frame.locator("section.live").inner_text()
    for expected in ("Step time", "Power", "held down by the power limit", "Waiting for data", "PCIe", "Live"):
        assert expected in words
    assert seen.frame.locator(".chart canvas").count() == 6
    seen.frame.locator("section.live > details summary").click()
    expect(seen.frame.locator(".losses")).to_contain_text("Hopper")
    before = len([url for url in seen.requests if "telemetry" in url])
    seen.page.wait_for_timeout(4_500)
    assert len([url for url in seen.requests if "telemetry" in url]) > before
    assert seen.errors == []


def test_a_hidden_tab_asks_for_no_telemetry(watched):
    seen = watched(telemetry())
    seen.page.evaluate("document.querySelector('iframe[src*=tb_bottleneck]').style.height = '0'")
    seen.page.evaluate("document.querySelector('iframe[src*=tb_bottleneck]').style.maxHeight = '0'")
    seen.page.wait_for_timeout(1_000)
    before = len([url for url in seen.requests if "telemetry" in url])
    seen.page.wait_for_timeout(4_500)
    assert len([url for url in seen.requests if "telemetry" in url]) == before


# --- Sharing ---


def test_a_report_is_shared_in_each_form(look, tmp_path, chromium):
    seen = look("diagnosis")
    seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def chosen(name):
        seen.frame.locator(".share summary").click()
        seen.frame.locator(".share .menu button", has_text=name).click()

    chosen("Copy as Markdown")
    expect(seen.frame.locator(".share [role=status]")).to_contain_text("copied")
    assert seen.page.evaluate("navigator.clipboard.readText()").startswith("## ")
    chosen("Copy the address")
    assert "#tb_bottleneck" in seen.page.evaluate("navigator.clipboard.readText()")
    with seen.page.expect_download() as downloading:
        chosen("JSON")
    assert json.loads(Path(downloading.value.path()).read_text())["reports"][0]["verdict"]["regime"] == "input"
    with seen.page.expect_download() as downloading:
        chosen("HTML")
    downloading.value.save_as(tmp_path / "report.html")
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(f"file://{tmp_path / 'report.html'}")
    words = page.locator("body").inner_text()
    context.close()
    assert seen.frame.locator("h1").inner_text() in words
    assert "num_workers" in words
    assert "Waiting for data" in words
    assert "Copy as Markdown" not in words


# --- Care ---


@pytest.mark.parametrize("view", ["diagnosis", *VIEWS])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(look, watched, view, dark):
    """Rules of WCAG 2 A and AA. axe-core is a development dependency of the tab and is put into the page from disk."""
    if not AXE.exists():
        pytest.fail("axe-core is not there; run `npm ci --ignore-scripts` in frontend/")
    if view == "live":
        seen = watched(telemetry())
    else:
        run = {"run": "job", "source": "rank0.17.pt.trace.json"} if view == "ranks" else {}
        seen = look(view, **run)
    seen.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
    seen.page.wait_for_timeout(300)
    seen.frame.evaluate(AXE.read_text())
    tags = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
    found = seen.frame.evaluate(
        f"axe.run(document, {tags}).then(answer => answer.violations.map(one => "
        "({id: one.id, nodes: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))})))"
    )
    assert found == []


@pytest.mark.parametrize("view", ["diagnosis", *VIEWS])
@pytest.mark.parametrize("width", [360, 3840])
def test_no_view_scrolls_sideways(look, watched, view, width):
    size = {"viewport": {"width": width, "height": 900}}
    if view == "live":
        seen = watched(telemetry())
        seen.page.set_viewport_size(size["viewport"])
        seen.page.wait_for_timeout(400)
    else:
        run = {"run": "job", "source": "rank0.17.pt.trace.json"} if view == "ranks" else {}
        seen = look(view, **run, **size)
    assert overhang(seen) <= 0
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
    for view in ("diagnosis", "timeline", "tables"):
        seen = look(view, run=HOSTILE.replace("/", ""))
        if view == "timeline":
            seen.frame.locator("details.seen summary").click()
        expect(seen.frame.locator("body")).to_contain_text("onerror", timeout=PATIENCE)
        assert seen.frame.locator("img").count() == 0
        assert seen.errors == []


def test_every_request_of_every_view_stays_on_the_origin(look, staged_board):
    origin = urlsplit(staged_board).netloc
    for view in ("timeline", "tables", "roofline"):
        seen = look(view)
        ours = [url for url in seen.requests if "tb_bottleneck" in url]
        assert ours
        assert {urlsplit(url).netloc for url in ours} == {origin}


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
