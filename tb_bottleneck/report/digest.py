"""The short form of a report, for lists of recordings in the tab and in the terminal."""

from dataclasses import dataclass

from tb_bottleneck.schema.bottleneck_pb2 import AccountRow, Membership, Report, Speedup, Verdict


@dataclass(frozen=True)
class Digest:
    """The part of a report that a list of recordings shows; the plugin keeps one for every recording."""

    health: str
    reason: str
    verdict: Verdict | None
    step_ns: float | None
    step_times_ns: tuple[float, ...] = ()
    rank: int | None = None
    world_size: int = 0
    account: tuple[AccountRow, ...] = ()  # only if the job has several ranks
    membership: Membership | None = None
    live: bool = False  # telemetry that still grows
    device: str = ""
    action: str = ""
    gain: Speedup | None = None
    causes: tuple[str, ...] = ()  # of the findings

    @classmethod
    def of(cls, report: Report) -> "Digest":
        """Returns the digest of a report; absent parts stay absent."""
        reasons = report.health.reasons
        return cls(
            health=report.health.status,
            reason=reasons[0].code if reasons else "",
            verdict=report.verdict if report.HasField("verdict") else None,
            step_ns=report.window.step_ns.mean if report.window.HasField("step_ns") else None,
            step_times_ns=tuple(report.window.step_times_ns),
            rank=report.rank if report.HasField("rank") else None,
            world_size=report.world_size,
            account=tuple(report.account) if report.world_size > 1 else (),
            device=report.device.name or report.device.kind,
            action=_action(report),
            gain=_gain(report),
            causes=tuple(finding.cause for finding in report.findings),
            membership=report.membership if report.HasField("membership") else None,
        )


def _action(report: Report) -> str:
    """Returns what to change first: the first fix of the plan, else that of the first finding, or its cause."""
    if report.plan:
        return report.plan[0].title
    return next((finding.fix.action or finding.title for finding in report.findings), "")


def _gain(report: Report) -> Speedup | None:
    """Returns the predicted gain of the whole plan, else of the first finding."""
    if report.plan:
        last = report.plan[-1]
        return Speedup(expected=last.speedup_total, low=last.low, high=last.high, basis="replay", assumes=last.assumes)
    predicted = [finding.speedup for finding in report.findings[:1] if finding.speedup.expected > 1]
    return predicted[0] if predicted else None
