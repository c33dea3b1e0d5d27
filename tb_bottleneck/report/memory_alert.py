"""Names the most severe memory problem of a training in its verdict.

Verdicts are about time. They name the memory problem beside or before the time.
"""

from collections.abc import Iterable, Sequence

from tb_bottleneck.schema import bottleneck_pb2 as pb

_WORTH_FIXING = ("critical", "warning")
_ORDER = (*_WORTH_FIXING, "info", "none")


def worth_fixing(memory: pb.Memory) -> Sequence[pb.MemoryFinding]:
    """Returns the findings that stand among those about time, the most severe first."""
    found = [finding for finding in memory.findings if finding.severity in _WORTH_FIXING and finding.headline]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def set_alert(verdict: pb.Verdict, memory: pb.Memory) -> None:
    """Makes the verdict name the most severe finding about this memory, or none."""
    alerts = [
        pb.MemoryAlert(
            cause=finding.cause,
            severity=finding.severity,
            title=finding.title,
            headline=finding.headline,
            action=finding.fix.action,
        )
        for finding in worth_fixing(memory)[:1]
    ]
    _set(verdict, alerts)


def take_alerts(verdict: pb.Verdict, others: Iterable[pb.Verdict]) -> None:
    """Makes the verdict name the most severe memory problem that these verdicts of the same training name."""
    _set(verdict, [other.memory_alert for other in others if other.HasField("memory_alert")])


def leading_alert(verdict: pb.Verdict) -> pb.MemoryAlert | None:
    """Returns the memory problem that is more urgent than the verdict about the time; None if there is none."""
    return verdict.memory_alert if verdict.memory_alert.leads else None


def join_memory(reports: Sequence[pb.Report]) -> None:
    """Gives reports of one process the memory, or the findings about it, that only another one of them has."""
    known = [(report, _copy(report.memory)) for report in reports if report.HasField("memory")]
    for report in reports:
        for other, memory in known:
            if other is report:
                continue
            if not report.HasField("memory"):
                report.memory.CopyFrom(memory)
                continue
            own = {finding.cause for finding in report.memory.findings}
            report.memory.findings.extend(each for each in memory.findings if each.cause not in own)


def _copy(memory: pb.Memory) -> pb.Memory:
    copy = pb.Memory()
    copy.CopyFrom(memory)
    return copy


def _set(verdict: pb.Verdict, alerts: Sequence[pb.MemoryAlert]) -> None:
    """Sets the most severe of the alerts. It leads if it ends the training, or is more severe than the verdict."""
    alert = min(alerts, key=lambda one: _ORDER.index(one.severity), default=None)
    if alert is None:
        verdict.ClearField("memory_alert")
        return
    chosen = pb.MemoryAlert()
    chosen.CopyFrom(alert)
    rank = _ORDER.index(verdict.severity) if verdict.severity in _ORDER else len(_ORDER)
    chosen.leads = chosen.severity == "critical" or _ORDER.index(chosen.severity) < rank
    verdict.memory_alert.CopyFrom(chosen)
