"""Builds the report of a job from the summaries of its ranks and their reports.

If the collectives cannot be paired, or the replay does not reproduce the recording, the job is judged by the accounts
of its ranks (the time per regime, see report/jobs.py).
"""

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.texts import guide_of, word
from tb_bottleneck.jobs.causes.candidates import Fact
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.culprits import Culprit, Verdict, culprits_of
from tb_bottleneck.jobs.machines import slow_machines
from tb_bottleneck.jobs.report.health import is_cut_short, is_trusted, reasons_of
from tb_bottleneck.jobs.report.rank_table import group_rows
from tb_bottleneck.jobs.report.wording import (
    JobAnalysis,
    Reason,
    action_of,
    action_sentence,
    evidence_row,
    headline_of,
    health_message,
    name_recordings,
    recording_path,
)
from tb_bottleneck.jobs.summary.encoding import decode
from tb_bottleneck.jobs.summary.rank_summary import Own, RankSummary
from tb_bottleneck.knowledge.texts import job_texts
from tb_bottleneck.replay.gain import Gain
from tb_bottleneck.report.cross_check import join
from tb_bottleneck.report.efficiency.of_job import job_efficiency
from tb_bottleneck.report.equal_ranks import with_equal_predictions
from tb_bottleneck.report.jobs import job_of, jobs_in
from tb_bottleneck.report.memory_alert import with_alert_of
from tb_bottleneck.report.rank_rows import OF_RANKS
from tb_bottleneck.schema import bottleneck_pb2 as pb

SEVERITIES = ((0.2, "critical"), (0.1, "warning"), (0.0, "info"))
"""Smallest cost share of a cause for each severity, as for the findings of one rank."""

EXPLAINED = 0.5  # a choice

TAKES_CORES = ("exposed_collectives", "small_messages", "synced_portions")
"""Causes whose fix frees cores in a job on CPUs: threads of the backend exchange the data, and the calls of collectives
are host work of the ranks. The replay does not simulate this effect. In an example with two ranks on two cores and 122
all-reduces per step, the fix made the job 5.6 times as fast; the simulated gain was 1.1."""

EXACT_REPLAY = 0.01
_OWN_REGIMES = {Own.DEVICE: Regime.COMPUTE, Own.INPUT: Regime.INPUT, Own.INTERRUPTION: Regime.INTERRUPTION}
_log = logging.getLogger(__name__)

Keep = Callable[[pb.Job, Mapping[int, pb.Report], JobAnalysis], None]
"""A function that takes a job, the reports of its ranks, and its analysis."""


def judged_together(
    directories: Sequence[str], reports: Sequence[pb.Report], summaries: Sequence[bytes], keep: Keep | None = None
) -> tuple[list[pb.Report], list[pb.Job]]:
    """Returns the reports of all recordings, and the report of each job that has reports of several ranks.

    `directories`, `reports` and `summaries` have one element per recording: its directory, its report, and the encoded
    summary of its rank, or empty bytes. The trace and the telemetry of the same process are joined into one report. The
    returned reports of a job's ranks also state the verdict of the job. `keep` is called for each job.
    """
    joined = with_equal_predictions(join(zip(directories, reports, strict=True)))
    jobs = jobs_of(joined, [_decoded(summary) for summary in summaries], keep)
    for members, job in zip(jobs_in(joined), jobs, strict=True):
        lead = f"{job.verdict.action}. {job.verdict.headline}" if job.verdict.action else job.verdict.headline
        sentence = job_texts().words["for_job"].safe_substitute(world=job.world_size, headline=lead)
        for position in members:
            joined[position].job_headline = sentence
    return joined, jobs


def _decoded(summary: bytes) -> RankSummary | None:
    """Returns the decoded summary; None if it is empty or cannot be decoded."""
    try:
        return decode(summary) if summary else None
    except Unreadable:
        return None


def jobs_of(
    reports: Sequence[pb.Report], summaries: Sequence[RankSummary | None], keep: Keep | None = None
) -> list[pb.Job]:
    """Returns the report of each job that has reports of several ranks.

    `summaries` has for each report the summary of its rank, or None. `keep` is called for each job.
    """
    jobs = []
    for members in jobs_in(reports):
        own = {reports[position].rank: reports[position] for position in members}
        usable = (summary for position in members if (summary := summaries[position]) is not None)
        known = [summary for summary in usable if not is_cut_short(summary)]
        job, analysis = _job(own, known)
        name_recordings(job, {rank: recording_path(report.run, report.source) for rank, report in own.items()})
        _add_efficiency(job, list(own.values()))
        if keep is not None:
            keep(job, own, analysis)
        jobs.append(job)
    return jobs


def _job(reports: Mapping[int, pb.Report], summaries: Sequence[RankSummary]) -> tuple[pb.Job, JobAnalysis]:
    """Returns the report of a job, and its analysis, which is empty if the ranks cannot be analysed together.

    `reports` maps rank numbers to reports, `summaries` are those of the ranks with complete recordings.
    """
    job = job_of(reports)
    reasons: list[Reason] = []
    try:
        if len(summaries) > 1:
            context = JobContext.of(summaries)
            reasons += reasons_of(context)
            job.health.CopyFrom(health_message(reasons))
            if is_trusted(context):
                return job, JobAnalysis(context, reasons, _fill(job, context, reports))
    except MemoryError:
        raise
    except Exception:  # an error in the analysis of the job must not cost the reports of its ranks
        _log.exception("the analysis of a job failed")
    return job, JobAnalysis(None, reasons)


def _add_efficiency(job: pb.Job, reports: Sequence[pb.Report]) -> None:
    """Adds the efficiency, such as the MFU, to `job` if it can be determined from the reports of the ranks."""
    try:
        efficiency = job_efficiency(reports, job.world_size, {group.kind for group in job.groups})
        if efficiency is not None:
            job.efficiency.CopyFrom(efficiency)
    except MemoryError:
        raise
    except Exception:  # as above
        _log.exception("the efficiency of a job could not be determined")


def _fill(job: pb.Job, context: JobContext, reports: Mapping[int, pb.Report]) -> list[Mapping[str, Fact]]:
    """Adds the results of the analysis `context` to `job`: culprits, gains, groups, hosts and the verdict. Returns the
    facts that show each culprit."""
    verdict = culprits_of(context)
    job.step_ns = context.step_ns
    job.groups.extend(group_rows(context))
    job.culprits.extend(_culprit(context, culprit) for culprit in verdict.culprits)
    job.replay.CopyFrom(pb.Replay(error=context.error))
    job.hosts.extend(_hosts(context))
    if context.clocks.error is not None:
        job.clock_error_ns = context.clocks.error
    if verdict.culprits:
        job.speedup_all.CopyFrom(_speedup(verdict.gain))
    del job.stragglers[:]
    job.ClearField("speedup")
    stragglers = [culprit for culprit in verdict.culprits if culprit.candidate.cause in OF_RANKS]
    for culprit in stragglers:
        behind = _number(culprit.candidate.facts.get("excess_ns")) / context.step_ns
        job.stragglers.extend(
            pb.Straggler(rank=rank, behind_share=behind or culprit.cost_share) for rank in _ranks(context, culprit)
        )
    if stragglers:
        job.speedup.CopyFrom(job.speedup_all)
    said = _verdict(job, context, verdict, reports)
    job.verdict.CopyFrom(with_alert_of(said, [report.verdict for report in reports.values()]))
    return [_facts(context, culprit) for culprit in verdict.culprits]


def _facts(context: JobContext, culprit: Culprit) -> dict[str, Fact]:
    """Returns the facts about a culprit that its evidence shows."""
    facts = _machine_facts(context, culprit)
    shown = {name: value for name, value in culprit.candidate.facts.items() if value or name == "stage"}
    return facts | {name: float(value) if isinstance(value, int | float) else value for name, value in shown.items()}


def _machine_facts(context: JobContext, culprit: Culprit) -> dict[str, Fact]:
    """Returns by how much the machines of the culprit's ranks are slower at the same work, or on how many ranks they
    are equally fast; {} if the cause is not about ranks, or if these ranks or all others did not measure."""
    figures, members = [summary.facts.machine for summary in context.job.summaries], culprit.candidate.ranks
    if culprit.candidate.cause not in OF_RANKS or not all(figures[rank] for rank in members):
        return {}
    if sum(map(bool, figures)) <= len(members):
        return {}
    slow = slow_machines(figures, on_cpu=not any("device_copy" in each for each in figures))
    own = [each for each in slow if each.rank in members]
    if not own:
        return {"machines_equal": float(sum(map(bool, figures)))}
    return {f"machine_{each.figure}": each.slower for each in reversed(own)}


def _code_or_machine(context: JobContext, culprit: Culprit) -> str:
    """Returns a sentence that says whether the machine or the code is slow on the culprit's ranks; empty if it is not
    known, or if the machine explains less than the part EXPLAINED of what its ranks take longer."""
    facts, words = _machine_facts(context, culprit), job_texts().words
    if not facts or "machines_equal" in facts:
        return f" {words['code'].substitute()}" if facts else ""
    slower = min(max(map(_number, facts.values())), 0.99)
    excess = _number(culprit.candidate.facts.get("excess_ns"))
    usual = float(np.nanmean(context.own.total[culprit.candidate.ranks])) - excess
    return f" {words['machine'].substitute()}" if slower / (1 - slower) * usual >= EXPLAINED * excess else ""


def _verdict(job: pb.Job, context: JobContext, verdict: Verdict, reports: Mapping[int, pb.Report]) -> pb.Verdict:
    """Returns the verdict about the first culprit. If there is no culprit, returns the verdict of a typical rank
    without its action."""
    texts = job_texts()
    confidence = "high" if context.error <= EXACT_REPLAY and job.health.status == "ok" else "medium"
    if not verdict.culprits:
        typical = pb.Verdict()
        typical.CopyFrom(_typical(reports).verdict)
        typical.ClearField("action")  # this action has the gain for the step of one rank, not for the job
        balanced = "balanced" if len(context.job.ranks) == context.job.world_size else "balanced_recorded"
        typical.headline += f" {texts.words[balanced].substitute()}"
        return typical
    first = verdict.culprits[0]
    cause, ranks = texts.causes[first.candidate.cause], _ranks(context, first)
    headline = headline_of(job)
    headline += _code_or_machine(context, first)
    own = reports[ranks[0]].verdict if first.candidate.cause in OF_RANKS and ranks[0] in reports else None
    if own is not None and own.regime != Regime.COMMUNICATION:  # waiting does not make a rank slow
        headline += " " + texts.words["on_that_rank"].safe_substitute(rank=ranks[0], headline=own.headline)
    regime = _regime(first, cause.regime)
    severity = next(name for least, name in SEVERITIES if first.cost_share >= least)
    return pb.Verdict(
        regime=regime,
        share=first.cost_share,
        severity="warning" if severity == "critical" and first.candidate.bound is not None else severity,
        confidence=confidence,
        headline=headline,
        title=Regime(regime).label,
        action=action_sentence(job),
    )


def _regime(culprit: Culprit, regime: str) -> str:
    """Returns the regime in which the own times (times without waiting) of the culprit's ranks exceed those of their
    peers most. If this is not known, or the cause does not concern single ranks, returns `regime`, the regime of the
    cause."""
    facts = culprit.candidate.facts
    excess = {kind: _number(facts.get(f"excess_{kind.name.lower()}_ns")) for kind in Own}
    largest = max(excess, key=lambda kind: excess[kind])
    return (
        _OWN_REGIMES.get(largest, Regime.HOST)
        if excess[largest] > 0 and culprit.candidate.cause in OF_RANKS
        else regime
    )


def _number(fact: Fact | None) -> float:
    return float(fact) if isinstance(fact, int | float) else 0.0


def _typical(reports: Mapping[int, pb.Report]) -> pb.Report:
    """Returns the report of a typical rank: the one whose share of exposed communication is the median."""

    def waits(rank: int) -> tuple[float, int]:
        return next(row.share for row in reports[rank].account if row.regime == Regime.COMMUNICATION), rank

    ordered = sorted(reports, key=waits)
    return reports[ordered[len(ordered) // 2]]


def _ranks(context: JobContext, culprit: Culprit) -> list[int]:
    """Returns the numbers of the ranks of the culprit."""
    return [context.job.ranks[position] for position in culprit.candidate.ranks.tolist()]


def _culprit(context: JobContext, culprit: Culprit) -> pb.Culprit:
    candidate = culprit.candidate
    text = job_texts().causes[candidate.cause]
    bound = candidate.bound is not None
    row = pb.Culprit(
        cause=candidate.cause,
        title=text.title,
        ranks=_ranks(context, culprit),
        cost_share=culprit.cost_share,
        evidence=[evidence_row(name, value) for name, value in _facts(context, culprit).items()],
        speedup=_speedup(culprit.gain, bound),
        fix=pb.Fix(
            summary=text.summary, code=text.code.strip(), confirm=text.confirm, documentation=guide_of(candidate.cause)
        ),
        host=candidate.host + 1,
    )
    if candidate.cause in TAKES_CORES and not any(one.facts.device for one in context.job.summaries):
        row.speedup.unless = word("cores_become_free").substitute()
    row.fix.action = action_of(row)
    return row


def _speedup(gain: Gain, bound: bool = False) -> pb.Speedup:
    """Returns the gain as a message. If `bound` is True, the gain is an upper bound, whose interval begins at 1."""
    words, expected, high = job_texts().words, gain.expected, gain.high
    if bound:
        return pb.Speedup(expected=expected, low=1.0, high=high, basis="bound", because=words["bound"].substitute())
    return pb.Speedup(expected=expected, low=gain.low, high=high, basis="replay", assumes=words["assumes"].substitute())


def _hosts(context: JobContext) -> list[pb.Host]:
    hosts, ranks = context.hosts, context.job.ranks
    return [
        pb.Host(number=number + 1, ranks=[ranks[position] for position in np.flatnonzero(hosts == number).tolist()])
        for number in range(int(hosts.max(initial=-1)) + 1)
    ]
