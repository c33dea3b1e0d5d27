"""The short form of a report, for lists of recordings in the tab and in the terminal.

The digest has the verdict, the step time, the first action, its gain, and the recording's health.
"""

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES
from tb_bottleneck.report.memory_alert import worth_fixing
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.bottleneck_pb2 import (
    AccountRow,
    Efficiency,
    Finding,
    Health,
    Membership,
    RegimeVerdict,
    Report,
    Speedup,
    Verdict,
    Window,
)


def step_ns_of(report: pb.Report) -> float | None:
    """Returns the step time in ns: without the profiler if this time was measured, otherwise as recorded; None if it is
    not known.

    The result is a mean, or the median if only the median was logged without the profiler. The mean over all steps of
    the telemetry is preferred to the mean of the few steps before a trace.
    """
    if report.HasField("unprofiled"):
        if report.unprofiled.run_step_ns > 0:
            return report.unprofiled.run_step_ns
        times = report.unprofiled.step_times_ns
        return sum(times) / len(times) if times else report.unprofiled.step_ns
    return report.window.step_ns.mean if report.window.HasField("step_ns") else None


def shown_ns(report: pb.Report | pb.Job, recorded_ns: float) -> float:
    """Returns a time of the recorded step (ns) as a part of the step time that `step_ns_of` returns, so that the times
    in a report add up to one step time."""
    if isinstance(report, pb.Job) or not report.HasField("unprofiled") or not report.window.step_ns.mean:
        return recorded_ns
    return recorded_ns * (step_ns_of(report) or 0.0) / report.window.step_ns.mean


WORTH_LEADING = 1.05
"""Smallest gain of a fix that may lead the report. Two runs of one training differ by a few percent."""


def leading_finding(report: pb.Report) -> pb.Finding | None:
    """Returns the first finding of the verdict's regime with an action and a gain of at least WORTH_LEADING, or None.

    The headline and lists of recordings name this finding.
    """
    for finding in report.findings:
        of_verdict = finding.regime == report.verdict.regime
        if finding.fix.action and of_verdict and finding.speedup.expected >= WORTH_LEADING:
            return finding
    return None


def plan_leads(report: pb.Report) -> bool:
    """Returns True if the first action of the report is the first fix of the plan (the simulated fixes in order).
    Returns False if the first action is the fix of the leading finding, or if there is none.

    If the gain of the leading finding was not simulated, its fix is not in the plan. The leading finding nevertheless
    comes first if its gain is at least that of the first fix of the plan, so that the cause of most of the lost time
    does not come after a small fix that happens to be simulated. An estimate from other trainings counts with its lower
    bound, because such trainings differ widely.
    """
    if not report.plan or report.plan[0].speedup_total < WORTH_LEADING:
        return False
    finding = leading_finding(report)
    if finding is None or finding.speedup.basis == "replay":
        return True
    gain = finding.speedup.low if finding.speedup.basis == "estimate" else finding.speedup.expected
    return gain < report.plan[0].speedup_total


# Health reasons that do not affect figures. Without recorded stacks, no line is named, but all figures are as accurate.
_NO_FIGURE = ("stacks_not_recorded",)


def health_notes(report: pb.Report) -> list[str]:
    """Returns texts about those defects of a recording that affect its figures."""
    return [reason.detail for reason in report.health.reasons if reason.code not in _NO_FIGURE]


class Digest(Record, frozen=True, gc=False):
    """The few values of a report that a list of recordings shows; the plugin keeps one digest for every recording.

    `reason` is the code of the first health reason, `device` the name or kind of the device, and `action` the first
    change; each is empty if there is none. `lost_share` is the fraction (0 to 1) of the time in avoidable regimes.
    Values that are not known are None.

    Messages are stored in encoded form. Otherwise, the garbage collector would repeatedly scan the message objects of
    thousands of digests, and stop the server for a tenth of a second each time."""

    health: str
    reason: str
    step_ns: float | None
    encoded: bytes = b""  # the message `brief`
    encoded_gain: bytes | None = None
    step_times_ns: tuple[float, ...] = ()
    rank: int | None = None
    world_size: int = 0
    live: bool = False  # telemetry that still grows
    device: str = ""
    action: str = ""
    causes: tuple[str, ...] = ()  # of the findings
    lost_share: float | None = None  # share of the time in avoidable regimes
    peak_bytes: float | None = None
    headroom_bytes: float | None = None
    revision: str = ""

    @property
    def brief(self) -> Report:
        """A small report with the fields for grouping into trainings, the verdict, and the throughput. Decoded at each
        access."""
        return Report.FromString(self.encoded)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if there is none."""
        brief = self.brief
        return brief.verdict if brief.HasField("verdict") else None

    @property
    def membership(self) -> Membership | None:
        """The facts that show the job of a rank; None if the recording is not a rank of a job."""
        brief = self.brief
        return brief.membership if brief.HasField("membership") else None

    @property
    def efficiency(self) -> Efficiency | None:
        """The throughput; None if it was not computed."""
        brief = self.brief
        return brief.efficiency if brief.HasField("efficiency") else None

    @property
    def account(self) -> tuple[AccountRow, ...]:
        """The time by regime, as rows of the report's account; empty if the job has one rank."""
        return tuple(self.brief.account)

    @property
    def gain(self) -> Speedup | None:
        """The predicted gain: of the whole plan if the plan leads, otherwise of the leading finding; None if
        unknown."""
        return Speedup.FromString(self.encoded_gain) if self.encoded_gain is not None else None

    @classmethod
    def of(cls, report: Report) -> "Digest":
        """Returns the digest of a report; parts that the report lacks are None or empty."""
        reasons, gain = report.health.reasons, _gain(report)
        return cls(
            health=report.health.status,
            reason=reasons[0].code if reasons else "",
            step_ns=step_ns_of(report),
            encoded=_brief(report).SerializeToString(),
            encoded_gain=gain.SerializeToString() if gain is not None else None,
            step_times_ns=tuple(report.window.step_times_ns),
            rank=report.rank if report.HasField("rank") else None,
            world_size=report.world_size,
            device=report.device.name or report.device.kind,
            action=_action(report),
            causes=(
                *(finding.cause for finding in report.findings),
                *(finding.cause for finding in worth_fixing(report.memory)),
            ),
            lost_share=_lost_share(report),
            peak_bytes=report.memory.peak_bytes or None,
            headroom_bytes=report.memory.headroom_bytes if report.memory.HasField("headroom_bytes") else None,
            revision=report.revision,
        )


def _action(report: Report) -> str:
    """Returns the first change as text: the first fix of the plan with the number of further fixes, otherwise the fix
    of the leading finding.

    Further fixes are counted because the digest's gain is that of the whole plan."""
    if plan_leads(report):
        others = len({step.title for step in report.plan}) - 1
        more = f", and {others} more {'fix' if others == 1 else 'fixes'}" if others else ""
        return f"{report.plan[0].title}{more}"
    finding = _finding(report)
    return finding.fix.action or finding.title if finding is not None else ""


def _finding(report: Report) -> Finding | None:
    """Returns the finding that the headline names, otherwise the first finding; None without findings."""
    return leading_finding(report) or next(iter(report.findings), None)


def _gain(report: Report) -> Speedup | None:
    """Returns the predicted gain of the whole plan, or of the leading finding; None if a memory problem leads."""
    if report.verdict.memory_alert.leads:
        return None
    if plan_leads(report):
        last = report.plan[-1]
        return Speedup(expected=last.speedup_total, low=last.low, high=last.high, basis="replay", assumes=last.assumes)
    finding = _finding(report)
    if finding is None or finding.speedup.expected <= 1:
        return None
    return finding.speedup


def _throughput(report: Report) -> Efficiency:
    """Returns a message with only the efficiency figures that lists show, so that reports of many runs stay small."""
    full, part = report.efficiency, Efficiency(samples_basis=report.efficiency.samples_basis)
    if full.HasField("samples_per_step"):
        part.samples_per_step = full.samples_per_step
    if full.HasField("samples_per_second"):
        part.samples_per_second = full.samples_per_second
    return part


def _lost_share(report: Report) -> float | None:
    if not report.account:
        return None
    return sum(row.share for row in report.account if row.regime in AVOIDABLE_REGIMES)


def _brief(report: Report) -> Report:
    """Returns a report with only the fields that are read to group recordings (trainings.py), to choose the evidence
    source, and to show lists."""
    brief = Report(
        run=report.run,
        source=report.source,
        evidence_source=report.evidence_source,
        world_size=report.world_size,
        health=Health(status=report.health.status),
        account=report.account if report.world_size > 1 else (),
        window=Window(steps=report.window.steps, basis=report.window.basis, step_ns=report.window.step_ns),
        regimes=[RegimeVerdict(regime=each.regime, status=each.status, share=each.share) for each in report.regimes],
        findings=[
            Finding(cause=finding.cause, regime=finding.regime, cost_share=finding.cost_share)
            for finding in report.findings[:1]
        ],
    )
    if report.window.HasField("recorded_step_ns"):
        brief.window.recorded_step_ns = report.window.recorded_step_ns
    if report.HasField("unprofiled"):
        brief.unprofiled.step_ns = report.unprofiled.step_ns
    if report.HasField("rank"):
        brief.rank = report.rank
    if report.HasField("verdict"):
        brief.verdict.CopyFrom(report.verdict)
    if report.HasField("membership"):
        brief.membership.CopyFrom(report.membership)
    if report.HasField("efficiency"):
        brief.efficiency.CopyFrom(_throughput(report))
    return brief
