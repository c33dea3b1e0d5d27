"""The saved report of a job: what is written can be read, and nothing else that looks like it."""

import json
import os
from dataclasses import replace

import pytest
from helpers.simulated_jobs import simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import ranks_text
from tb_bottleneck.jobs.report.health import JobWriter, tables_of
from tb_bottleneck.jobs.report.job_report import jobs_of
from tb_bottleneck.jobs.report.saved_job import Stale, read, saved_path, write
from tb_bottleneck.jobs.report.wording import evidence_row, headline_of
from tb_bottleneck.knowledge.texts import job_texts
from tests.jobs.report.test_job_report import report_of


def tables(topology="data", faults=None, attentions=0, **shape):
    summaries = simulated(topology, faults or Faults(input={6: 0.5}), **shape)
    summaries = [replace(each, facts=replace(each.facts, attentions=attentions)) for each in summaries]
    found = []
    jobs_of([report_of(summary) for summary in summaries], summaries, lambda *judged: found.append(tables_of(*judged)))
    return found[0]


@pytest.fixture
def traces(tmp_path):
    """Files that stand for the traces of 8 ranks."""
    paths = [tmp_path / f"rank{rank}.pt.trace.json" for rank in range(8)]
    for path in paths:
        path.write_text("{}")
    return [str(path) for path in paths]


@pytest.mark.parametrize(
    "ranks", [[3], [1, 2, 3], [1, 3], [0, 2, 4, 6], list(range(0, 90, 2)), [1000000, 2000000, 3000001]]
)
def test_ranks_become_words(ranks):
    fact = evidence_row("unrecorded", ranks)
    assert (fact.label, fact.text) == (job_texts().evidence["unrecorded"].label, ranks_text(ranks))


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("topology", "faults", "attentions"),
    [
        ("data", Faults(input={6: 0.5}), 0),
        ("data", Faults(microbatches=16), 0),
        ("data", Faults(portions=4, wire=2.5), 0),
        ("pipeline", Faults(stage={3: 1.5}), 0),
        ("pipeline", Faults(stage={3: 1.5}), 16 * 8),
        ("tensor", Faults(link={"tensor0": 3.0}, host={2: 0.3}), 0),
        ("experts", Faults(experts={1: 2.5}), 0),
    ],
)
def test_what_is_written_is_read(traces, topology, faults, attentions):
    """Also the texts, which the file does not contain."""
    saved = tables(topology, faults, attentions)
    labels = {fact.label for culprit in saved.job.culprits for fact in culprit.evidence}
    assert ("Layers per stage" in labels) == (attentions > 0)
    path = write(saved, traces)
    answer = read(str(path), "run")
    assert answer.basis == "saved"
    assert not answer.other_version
    expected = type(answer)(job=saved.job, ranks=saved.ranks, steps=saved.steps)
    expected.job.run = "run"
    expected.job.verdict.headline = headline_of(saved.job)
    expected.job.verdict.title = Regime(saved.job.verdict.regime).label  # the helper leaves out this text and the next
    for row in expected.job.account:
        row.meaning = next(each.meaning for each in answer.job.account if each.regime == row.regime)
    for culprit, own in zip(expected.job.culprits, answer.job.culprits, strict=True):
        if culprit.fix.code.startswith(
            "tb-bottleneck compare"
        ):  # it names the recordings, of which the helper has none
            assert f"run/rank{own.ranks[0]}.pt.trace.json" in own.fix.code
            culprit.fix.code = own.fix.code
    expected.ranks.source[:] = [os.path.basename(trace) for trace in traces]
    assert answer.job == expected.job
    assert answer.ranks == expected.ranks
    assert answer.steps == expected.steps


def test_the_file_contains_no_text_and_no_path(traces, tmp_path):
    text = write(tables(), traces).read_text()
    cause = job_texts().causes["rank_input"]
    assert '"cause":"rank_input"' in text
    assert not any(own in text for own in (cause.title, cause.summary, cause.confirm, "DataLoader", str(tmp_path)))


@pytest.mark.parametrize(
    "disturb", [lambda path: os.utime(path, (1, 1)), os.unlink, lambda path: path.write_text("longer")]
)
def test_a_changed_or_missing_trace_makes_it_stale(traces, tmp_path, disturb):
    path = write(tables(), traces)
    disturb(tmp_path / "rank3.pt.trace.json")
    with pytest.raises(Stale, match="1 of the 8 traces"):
        read(str(path), ".")


def test_another_version_is_named(traces):
    path = write(tables(), traces)
    change(path, lambda content: content.update(made_by="0.1-f00"))
    assert read(str(path), ".").other_version


SPANS = {
    "rank": [0], "phase": ["forward"], "microbatch": [1], "begin_ns": [0.0], "end_ns": [1.0], "critical": [True],
}  # fmt: skip


def test_spans_of_a_pipeline_are_kept(traces):
    path = write(tables(), traces)
    change(path, lambda content: content.update(pipeline=SPANS))
    assert list(read(str(path), ".").pipeline.phase) == ["forward"]


ATTACKS = {
    "format": lambda c: c.update(format=2),
    "key": lambda c: c.update(more=1),
    "list": lambda c: c.update(job=[]),
    "path": lambda c: c["traces"][3].__setitem__(0, "../rank3.pt.trace.json"),
    "absolute": lambda c: c["traces"][3].__setitem__(0, "/etc/passwd"),
    "traces": lambda c: c["traces"].pop(),
    "infinite": lambda c: c["traces"][3].__setitem__(1, float("inf")),
    "cause": lambda c: c["job"]["culprits"][0].update(cause="made_up"),
    "fix": lambda c: c.update(evidence=[{"made_up": 1.0}]),
    "text": lambda c: c.update(evidence=[{"work_ratio": "rm -rf /"}]),
    "operation": lambda c: c.update(evidence=[{"operation": "<b>"}]),
    "layers": lambda c: c.update(evidence=[{"layers": ["<b>"]}]),
    "no ranks": lambda c: c.update(evidence=[{"unrecorded": []}]),
    "evidence": lambda c: c["job"]["culprits"][0].update(evidence=[{"label": "work_ratio", "text": "<b>"}]),
    "more evidence": lambda c: c["evidence"].append({}),
    "basis": lambda c: c["job"]["speedup_all"].update(basis="faith"),
    "regime": lambda c: c["job"]["verdict"].update(regime="made_up"),
    "severity": lambda c: c["ranks"]["severity"].__setitem__(0, "dire"),
    "kind": lambda c: c["job"]["groups"][0].update(kind="<b>"),
    "health": lambda c: c["job"]["health"].update(reasons=[{"code": "job_cut", "detail": "Run rm -rf /."}]),
    "reason": lambda c: c.update(reasons=[["made_up", {}]]),
    "value of a reason": lambda c: c.update(reasons=[["unpaired", {"share": "<b>"}]]),
    "share of a reason": lambda c: c.update(reasons=[["unpaired", {"share": 7.5}]]),
    "why": lambda c: c.update(reasons=[["clocks", {"why": "<b>"}]]),
    "like": lambda c: c.update(reasons=[["peers", {"like": [["<b>", 1]], "more": 0}]]),
    "missing value": lambda c: c.update(reasons=[["unpaired", {}]]),
    "rank": lambda c: c["ranks"]["rank"].__setitem__(7, 9_000),
    "twice": lambda c: c["ranks"]["rank"].__setitem__(7, 6),
    "share": lambda c: c["ranks"]["account"][0]["share"].__setitem__(0, 1.5),
    "negative": lambda c: c["ranks"]["step_ns"].__setitem__(0, -1),
    "not a number": lambda c: c["ranks"]["step_ns"].__setitem__(0, "NaN"),
    "short": lambda c: c["ranks"]["wait_share"].pop(),
    "steps": lambda c: c["steps"].update(count=1 << 30),
    "world": lambda c: c["job"].update(world_size=1 << 30),
    "id": lambda c: c["ranks"].update(id=["a"] * 8),
    "phase": lambda c: c.update(pipeline=SPANS | {"phase": ["<b>"]}),
    "span": lambda c: c.update(pipeline=SPANS | {"end_ns": []}),
    "rank of a span": lambda c: c.update(pipeline=SPANS | {"rank": [9_000]}),
    "many spans": lambda c: c.update(pipeline={name: each * 9_000 for name, each in SPANS.items()}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_we_would_not_have_written_is_refused(traces, attack):
    path = write(tables(), traces)
    change(path, ATTACKS[attack])
    with pytest.raises(Unreadable):
        read(str(path), ".")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff" * 9, b"[" * 100_000, b'{"format": 1}'])
def test_any_bytes_are_refused(tmp_path, content):
    path = tmp_path / "a.job.bottlenecks.json"
    path.write_bytes(content)
    with pytest.raises(Unreadable):
        read(str(path), ".")
    with pytest.raises(Unreadable):
        read(str(tmp_path), ".")


def test_names_of_groups_lose_control_characters(traces):
    path = write(tables(), traces)
    change(path, lambda content: content["job"]["groups"][0].update(name="\x1b[31m" + "x" * 1000))
    name = read(str(path), ".").job.groups[0].name
    assert "\x1b" not in name
    assert len(name) == 200


def test_a_job_in_several_directories_is_not_written(traces, tmp_path):
    (tmp_path / "more").mkdir()
    elsewhere = [*traces[:7], str(tmp_path / "more" / "rank7.pt.trace.json")]
    (tmp_path / "more" / "rank7.pt.trace.json").write_text("{}")
    with pytest.raises(OSError, match="several directories"):
        write(tables(), elsewhere)
    with pytest.raises(OSError, match="local files only"):
        write(tables(), ["s3://bucket/a", "s3://bucket/b"])


def test_the_writer_collects_problems(traces, tmp_path):
    summaries = simulated("data")
    reports = [report_of(summary) for summary in summaries]
    writer = JobWriter(reports, traces)
    os.unlink(traces[2])
    jobs_of(reports, summaries, writer.write)
    (problem,) = writer.problems
    assert problem == f"{saved_path(traces)} could not be written: rank2.pt.trace.json has disappeared"


def test_the_shares_of_a_rank_agree_with_the_account():
    saved = tables()
    ranks = saved.ranks
    communication = next(column.share for column in ranks.account if column.regime == "communication")
    assert max(ranks.excess_share) == ranks.excess_share[6]
    for wait, wire, exposed in zip(ranks.wait_share, ranks.wire_share, communication, strict=True):
        assert wait + wire <= exposed + 0.02
    steps = saved.steps
    for position in range(len(steps.begin_ns)):
        assert sum(column.share[position] for column in steps.account) == pytest.approx(1, abs=0.01)
    ends = [steps.end_ns[row * steps.count] for row in range(8)]
    assert max(ends) - min(ends) < 0.05 * saved.job.step_ns, "the ranks of a synchronous job end together"
