"""Lets the two witnesses of one process hear each other: the profiler's own cost, and where they disagree.

A trace sees some steps closely and slows them; telemetry sees all of them from outside. Neither report changes its
verdict; both say where the other one judges a regime differently.
"""

import re
from collections.abc import Iterable, Iterator
from string import Template

from tb_bottleneck.knowledge.telemetry_texts import telemetry_advice
from tb_bottleneck.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import duration_text, share_text

# Shares that differ by less are the same: steps differ by as much from one to the next.
APART = 0.05
# A profiler that costs less than this changes no share that is worth a sentence (method of calibrating replays).
COSTS = 0.05
ENOUGH_STEPS = 20

# A directory of the monitor (monitor/writer/run_directory.py) for one rank of several:
# date, mark of the job, rank, process.
_RANK = re.compile(r"\d{8}-\d{6}_([0-9a-f]{6})_rank\d+_\d+$", re.ASCII)
_JUDGED = ("fires", "clear")


def join(reports: Iterable[tuple[str, pb.Report]]) -> None:
    """Joins in place the reports of traces and of telemetry that are about one process.

    Each comes with its directory: the monitor writes traces beside its telemetry, or beside rank 0's. A trace's report
    that was joined has the witness `both`.
    """
    told = [(_job_of(place), report) for place, report in reports if report.HasField("verdict")]
    telemetry = [(place, report) for place, report in told if report.evidence_source == "telemetry"]
    traces = [(place, report) for place, report in told if report.evidence_source == "trace"]
    for place, heard in telemetry:
        own = [trace for where, trace in traces if where == place and _same_rank(trace, heard)]
        for trace in own:
            join_two(trace, heard)
        if own:
            heard.disagreements.extend(own[-1].disagreements)


def join_two(trace: pb.Report, telemetry: pb.Report) -> None:
    """Tells the trace's report what telemetry knows."""
    trace.witness = trace.evidence_source = "both"
    trace.disagreements.extend(_disagreements(trace, telemetry))
    steps = telemetry.window.steps
    if trace.window.basis == "whole" or steps < ENOUGH_STEPS or telemetry.window.step_ns.median <= 0:
        return
    bare, recorded = telemetry.window.step_ns.median, trace.window.step_ns.median
    ratio = recorded / bare
    words = telemetry_advice().joined["costs" if ratio - 1 >= COSTS else "faster" if 1 - ratio >= COSTS else "free"]
    sentence = words.safe_substitute(
        bare=duration_text(bare), recorded=duration_text(recorded), ratio=f"{ratio:.2f}", steps=f"{steps:,}"
    )
    trace.unprofiled.MergeFrom(pb.Unprofiled(step_ns=bare, steps=steps, ratio=ratio, sentence=sentence))


def lines_of(report: pb.Report) -> Iterator[str]:
    """What the other witness adds, as sentences."""
    if report.HasField("unprofiled"):
        yield report.unprofiled.sentence
    yield from (disagreement.sentence for disagreement in report.disagreements)


def _job_of(place: str) -> str:
    """The directory; of a rank's own one the job's mark, since the ranks' traces lie together in rank 0's."""
    parent, _, name = place.replace("\\", "/").rpartition("/")
    rank = _RANK.match(name)
    return f"{parent}/{rank[1]}" if rank else place


def _same_rank(one: pb.Report, other: pb.Report) -> bool:
    return not (one.HasField("rank") and other.HasField("rank")) or one.rank == other.rank


def _disagreements(trace: pb.Report, telemetry: pb.Report) -> Iterator[pb.Disagreement]:
    heard = {verdict.regime: verdict for verdict in telemetry.regimes}
    for seen in trace.regimes:
        # What telemetry cannot explain is no judgement that a trace could contradict.
        other = heard.get(seen.regime) if seen.regime != Regime.UNEXPLAINED else None
        if other is None or seen.status == other.status or not {seen.status, other.status} <= {*_JUDGED}:
            continue
        if seen.regime in DEVICE_REGIMES and telemetry.device.kind == "cpu":
            continue  # a CPU has no counters that tell what bounds it: the share of 0 was not measured
        if abs(seen.share - other.share) < APART:
            continue
        yield pb.Disagreement(
            regime=seen.regime, trace=seen.status, telemetry=other.status, sentence=_sentence(seen, other, telemetry)
        )


def _sentence(seen: pb.RegimeVerdict, heard: pb.RegimeVerdict, telemetry: pb.Report) -> str:
    words = telemetry_advice().joined
    template: Template = words["differ_on_device" if seen.regime in DEVICE_REGIMES else "differ_on_host"]
    return template.safe_substitute(
        title=seen.title,
        seen=share_text(seen.share),
        heard=share_text(heard.share),
        steps=f"{telemetry.window.steps:,}",
    )
