"""Adds the most severe memory problem of a training to its verdict, which is about time."""

from collections.abc import Iterable, Sequence

from tb_bottleneck.schema import bottleneck_pb2 as pb

_WORTH_FIXING = ("critical", "warning")
_ORDER = (*_WORTH_FIXING, "info", "none")


def worth_fixing(memory: pb.Memory) -> Sequence[pb.MemoryFinding]:
    """Returns the memory findings with the severity critical or warning, the most severe first."""
    found = [finding for finding in memory.findings if finding.severity in _WORTH_FIXING and finding.headline]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def set_alert(verdict: pb.Verdict, memory: pb.Memory) -> None:
    """Sets the memory alert of `verdict` to the most severe finding about `memory`, or removes the alert if there is
    none."""
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
    """Sets the memory alert of `verdict` to the most severe alert of `others`, which are verdicts of the same training,
    or removes the alert if there is none."""
    _set(verdict, [other.memory_alert for other in others if other.HasField("memory_alert")])


def leading_alert(verdict: pb.Verdict) -> pb.MemoryAlert | None:
    """Returns the memory alert of `verdict` if it is more urgent than the verdict about time, otherwise None."""
    return verdict.memory_alert if verdict.memory_alert.leads else None


def join_memory(reports: Sequence[pb.Report]) -> None:
    """Copies the memory part, or findings in it, between the reports of one process to those reports that lack them."""
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
    """Sets the memory alert of `verdict` to the most severe of `alerts`. The alert leads if it is critical, or more
    severe than the verdict."""
    alert = min(alerts, key=lambda one: _ORDER.index(one.severity), default=None)
    if alert is None:
        verdict.ClearField("memory_alert")
        return
    chosen = pb.MemoryAlert()
    chosen.CopyFrom(alert)
    rank = _ORDER.index(verdict.severity) if verdict.severity in _ORDER else len(_ORDER)
    chosen.leads = chosen.severity == "critical" or _ORDER.index(chosen.severity) < rank
    verdict.memory_alert.CopyFrom(chosen)
