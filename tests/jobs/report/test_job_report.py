"""The report of a job has its culprits, groups, hosts and health; without pairs, the accounts decide."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, planted, simulated, without_rows
from simulate.jobs.cases import BOUNDED, PLANTERS
from simulate.jobs.topologies import Faults

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import ranks_text
from tb_bottleneck.jobs.report.health import is_trusted, reasons_of
from tb_bottleneck.jobs.report.job_report import jobs_of
from tb_bottleneck.jobs.report.rank_table import bus_factor, group_rows
from tb_bottleneck.jobs.report.wording import health_message
from tb_bottleneck.jobs.summary.encoding import decode, encode
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.measures.efficiency.figure import known
from tb_bottleneck.report.efficiency.figures import add_figures
from tb_bottleneck.report.figure_text import ranges_text
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.job import render_job


def report_of(summary):
    """Returns the parts of a rank's report that its job needs."""
    report = pb.Report(run=".", rank=summary.facts.rank, world_size=summary.facts.world_size, evidence_source="trace")
    total = summary.account.sum()
    for position, regime in enumerate(REGIMES):
        time = int(summary.account[:, position].sum())
        report.account.add(
            regime=regime, share=time / total, ns_per_step=time / summary.steps, title=Regime(regime).label
        )
    report.verdict.MergeFrom(
        pb.Verdict(regime="compute", headline=f"Rank {summary.facts.rank} computes.", severity="none")
    )
    report.window.step_ns.mean = total / summary.steps
    add_figures(report.efficiency, {"mfu": known(0.4, "derived"), "peak_flops": known(1e14, "derived")})
    report.efficiency.samples_per_step = 8
    return report


def job_of(summaries):
    (job,) = jobs_of([report_of(summary) for summary in summaries], summaries)
    return job


@pytest.mark.parametrize("cause", PLANTERS)
def test_every_cause_is_reported_with_evidence_fix_and_gain(cause):
    job = job_of(planted(cause, 5)[1])
    (culprit,) = job.culprits
    assert culprit.cause == cause
    assert culprit.evidence
    assert culprit.fix.summary
    assert culprit.speedup.basis == ("bound" if cause in BOUNDED else "replay")
    assert culprit.speedup.low <= culprit.speedup.expected <= culprit.speedup.high
    assert culprit.cost_share == pytest.approx(1 - 1 / culprit.speedup.expected)
    assert "$" not in job.verdict.headline
    document = json.loads(as_json(job))
    assert {
        "world_size",
        "missing_ranks",
        "groups",
        "culprits",
        "speedup_all",
        "replay",
        "stragglers",
    } <= document.keys()
    assert f"[{cause}]" in render_job(job)


def test_the_command_of_a_fix_names_recordings_of_the_job():
    """It named `runs/rank_3` and `runs/rank_4`, which no job has."""
    summaries = planted("slow_rank", 5)[1]
    reports = [report_of(summary) for summary in summaries]
    for report in reports:
        report.run, report.source = "run 1", f"rank{report.rank}.pt.trace.json"
    (job,) = jobs_of(reports, summaries)
    (culprit,) = job.culprits
    slow, peer = re.findall(r"'run 1/rank(\d+)\.pt\.trace\.json'", culprit.fix.code)
    assert int(slow) in culprit.ranks
    assert int(peer) not in culprit.ranks
    assert "$" not in culprit.fix.code


def test_the_headline_names_the_rank_and_what_it_does():
    job = job_of(simulated("data", Faults(input={6: 0.5})))
    assert (
        job.verdict.headline
        == "The other ranks wait for rank 6, which waits for data: 31 % of the time. On rank 6: Rank 6 computes."
    )
    assert (job.verdict.regime, job.verdict.severity, job.verdict.confidence) == ("input", "critical", "high")
    assert [straggler.rank for straggler in job.stragglers] == [6]
    assert job.speedup.expected == job.speedup_all.expected


def test_a_headline_about_waiting_does_not_explain_a_slow_rank():
    summaries = simulated("data", Faults(host={6: 0.6}))
    reports = [report_of(summary) for summary in summaries]
    reports[6].verdict.regime = "communication"
    (job,) = jobs_of(reports, summaries)
    assert "On rank 6" not in job.verdict.headline


@pytest.mark.parametrize("measured", [{6}, {0, 1, 2}], ids=["only the slow rank", "only other ranks"])
def test_ranks_that_did_not_measure_are_not_called_equal(measured):
    summaries = simulated("data", Faults(host={6: 0.6}))
    for rank in measured:
        facts = replace(summaries[rank].facts, machine={"product": 1e12, "device_copy": 1e12})
        summaries[rank] = replace(summaries[rank], facts=facts)
    assert "machine" not in job_of(summaries).verdict.headline


@pytest.mark.parametrize("machine", [["product"], {"other": 1.0}, {"product": -1.0}, {"product": "x"}])
def test_invalid_figures_of_a_machine_are_no_summary(machine):
    summary = simulated("data", Faults())[0]
    with pytest.raises(Unreadable):
        decode(encode(replace(summary, facts=replace(summary.facts, machine=machine))))


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        ({6: 0.6}, "The machine is slower at the same work"),
        ({6: 0.97}, "The machines of the ranks are equally fast at the same work"),
        ({2: 0.6}, "The machines of the ranks are equally fast at the same work"),
        ({6: 0.87}, None),
        (None, None),
    ],
    ids=["machine", "code", "another rank", "explains little", "not measured"],
)
def test_measured_machines_tell_code_from_machine(slower, said):
    """Rank 6 needs half as long again for its work."""
    summaries = simulated("data", Faults(host={6: 0.6}))
    for position, summary in enumerate(summaries if slower is not None else ()):
        machine = {"product": 1e12 * slower.get(position, 1.0), "device_copy": 1e12}
        summaries[position] = decode(encode(replace(summary, facts=replace(summary.facts, machine=machine))))
    job = job_of(summaries)
    assert list(job.culprits[0].ranks) == [6]
    assert ("machine" in job.verdict.headline) == (said is not None)
    assert said is None or said in job.verdict.headline
    shown = [each for each in job.culprits[0].evidence if "at the same work" in each.label]
    assert len(shown) == (slower is not None)


def test_a_job_without_culprits_has_no_stragglers():
    job = job_of(simulated("pipeline", Faults(microbatches=16)))
    assert (list(job.culprits), list(job.stragglers), job.HasField("speedup_all")) == ([], [], False)
    assert "No rank, host, link or stage holds the others up." in job.verdict.headline


def test_hosts_are_numbers_and_clocks_have_an_accuracy():
    job = job_of(simulated())
    assert [(host.number, list(host.ranks)) for host in job.hosts] == [(1, [0, 1, 2, 3]), (2, [4, 5, 6, 7])]
    assert 0 < job.clock_error_ns < 10_000
    assert "host0" not in as_json(job), "names of hosts are private"


def test_groups_have_waits_transfers_and_bandwidth():
    context = context_of(simulated("tensor", Faults(host={3: 0.3})))
    rows = {(row.kind, row.count): row for row in group_rows(context)}
    assert set(rows) == {("tensor", 2), ("data", 4)}
    tensor = rows["tensor", 2]
    assert list(tensor.ranks) == [0, 1, 2, 3]
    assert tensor.wait_share > 0.03
    assert tensor.transfers[0].operation == "all_reduce"
    assert tensor.transfers[0].calls == pytest.approx(24)
    # 8 MiB in 0.15 ms, at 2 (n - 1) / n for n = 4.
    assert tensor.bus_gbps == pytest.approx((8 << 20) / 150_000 * 1.5, rel=0.05)
    waits, wires = context.waited
    assert waits.sum() + wires.sum() == pytest.approx(
        (context.graph.points.time - context.graph.points.reached)[context.graph.points.resumes].sum(), rel=0.01
    )


def test_the_factors_of_bus_bandwidth_are_those_of_nccl_tests():
    assert bus_factor(Operation.ALL_REDUCE, 4) == 1.5
    assert bus_factor(Operation.ALL_GATHER, 4) == bus_factor(Operation.ALL_TO_ALL, 4) == 0.75
    assert bus_factor(Operation.BROADCAST, 4) == bus_factor(Operation.SEND, 2) == 1


def test_a_job_whose_collectives_cannot_be_paired_is_judged_by_accounts():
    summaries = [without_rows(s, list(range(len(s.communications)))) for s in simulated("data", Faults(host={2: 0.6}))]
    job = job_of(summaries)
    assert not job.culprits
    assert [straggler.rank for straggler in job.stragglers] == [2]
    assert [reason.code for reason in job.health.reasons] == ["job_nothing_paired"]


def test_nothing_is_claimed_if_many_pairs_are_wrong():
    summaries = simulated()
    sizes = summaries[3].communications.bytes.copy()
    sizes[::4] += 4
    summaries[3] = replace(summaries[3], communications=replace(summaries[3].communications, bytes=sizes))
    context = context_of(summaries)
    assert not is_trusted(context)
    assert "job_wrong_pairs" in [reason.code for reason in health_message(list(reasons_of(context))).reasons]


def test_the_figures_of_all_ranks():
    found = job_of(simulated("data")).efficiency
    notes = {note.field: note for note in found.notes}
    assert (found.mfu, found.samples_per_step) == (pytest.approx(0.4), 64)
    assert notes["samples_per_second"].basis == "of all ranks"
    assert not found.HasField("goodput")
    assert "some ranks" in notes["goodput"].because


@pytest.mark.parametrize("topology", ["tensor", "pipeline"])
def test_samples_are_not_summed_over_ranks_that_share_them(topology):
    job = job_of(simulated(topology))
    assert not job.efficiency.HasField("samples_per_second")
    assert job.efficiency.mfu == pytest.approx(0.4)
    assert "Samples per second is not known: the job has tensor, pipeline" in " ".join(render_job(job).split())


def test_an_error_in_the_analysis_costs_only_the_job(monkeypatch):
    monkeypatch.setattr("tb_bottleneck.jobs.report.job_report.culprits_of", None)
    job = job_of(simulated("data", Faults(host={2: 0.6})))
    assert [straggler.rank for straggler in job.stragglers] == [2], "by the accounts"


@pytest.mark.nightly
def test_of_4096_ranks_none_is_lost():
    """Ranks of one host repeat: the analysis is linear in the ranks."""
    eight = simulated(steps=2)
    many = [
        replace(
            eight[number % 8],
            facts=replace(eight[number % 8].facts, rank=number, world_size=4096, host=f"h{number // 8}"),
        )
        for number in range(4096)
    ]
    wide = [replace(s, groups=tuple(replace(group, ranks=(), size=4096) for group in s.groups)) for s in many]
    context = context_of(wide)
    assert context.pairs.count == 2 * 4
    assert context.error < 0.01
    assert np.bincount(context.pairs.pair).tolist() == [4096] * 8


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ([0, 1, 5], "ranks 0, 1 and 5"),
        ([8, 9, 10, 11], "ranks 8 to 11"),
        ([0, 7, 9, 11, 13, 15, 17], "7 ranks (0, 7, ...)"),
    ],
)
def test_ranks_in_words(ranks, text):
    assert ranks_text(ranks) == text


def test_the_text_leads_with_the_verdict():
    lines = render_job(job_of(simulated("data", Faults(input={6: 0.5})))).splitlines()
    assert lines[0] == "Job: ranks 0-7 of 8"
    assert lines[2].startswith("Speed up the data loader of rank 6: about 1.5")
    assert any(line.startswith("The other ranks wait for rank 6, which waits for data") for line in lines[3:5])
    assert any(line.startswith("Step: ") and "2 hosts, clocks aligned to" in line for line in lines)


def test_a_rank_whose_recording_is_cut_short_counts_as_missing():
    summaries = simulated("pipeline", Faults(host={6: 0.6}))
    whole = job_of(summaries)
    lost = [number for number, step in enumerate(summaries[3].communications.step) if step >= 2]
    cut = without_rows(summaries[3], lost)
    summaries[3] = replace(cut, facts=replace(cut.facts, lost=True))
    job = job_of(summaries)
    assert [(culprit.cause, list(culprit.ranks)) for culprit in job.culprits] == [("slow_rank", [6])]
    assert job.culprits[0].speedup.expected == pytest.approx(whole.culprits[0].speedup.expected, rel=0.02)
    assert "job_missing" in {reason.code for reason in job.health.reasons}


def test_ranges_of_ranks():
    assert ranges_text([0, 1, 2, 5]) == "ranks 0-2, 5"
    assert ranges_text([4]) == "rank 4"
