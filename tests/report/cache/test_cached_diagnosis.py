"""A recording is diagnosed once, and again only if the report could be different."""

import os

import pytest

from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.cached_diagnosis import diagnose_cached, is_repeatable, listed
from tb_bottleneck.report.cache.report_store import Store, identity_of
from tb_bottleneck.schema.bottleneck_pb2 import Health, RegimeVerdict, Report


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


def test_a_report_beside_the_trace_is_for_lists_unless_the_whole_one_is_stored(cached_trace, store):
    assert listed(store, cached_trace, "r") is None
    sidecar.write(cached_trace, identity_of(cached_trace), Report(schema=1, source="x", health=Health(status="ok")))
    assert listed(store, cached_trace, "r").run == "r"
    judge = Judge()
    diagnose_cached(judge, store, cached_trace)
    assert judge.asked == 1
    assert listed(store, cached_trace, "r") is None


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
