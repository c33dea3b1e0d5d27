"""The most severe memory problem of a training, which its verdict about time shows too."""

from collections.abc import Iterable, Sequence

from tb_bottleneck.schema import bottleneck_pb2 as pb

_WORTH_FIXING = ("critical", "warning")
_ORDER = (*_WORTH_FIXING, "info", "none")


def worth_fixing(memory: pb.Memory) -> Sequence[pb.MemoryFinding]:
    """Returns the memory findings with the severity critical or warning, the most severe first."""
    found = [finding for finding in memory.findings if finding.severity in _WORTH_FIXING and finding.headline]
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def alert_of(severity: str, memory: pb.Memory) -> pb.MemoryAlert | None:
    """Returns the alert about the most severe finding in `memory`, for a verdict with `severity`; None if there is
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
    return _most_severe(severity, alerts)


def with_alert_of(verdict: pb.Verdict, others: Iterable[pb.Verdict]) -> pb.Verdict:
    """Returns a copy of `verdict` with the most severe memory alert of `others`, which are verdicts of the same
    training, or without an alert if there is none."""
    result = pb.Verdict()
    result.CopyFrom(verdict)
    result.ClearField("memory_alert")
    alerts = [other.memory_alert for other in others if other.HasField("memory_alert")]
    alert = _most_severe(verdict.severity, alerts)
    if alert is not None:
        result.memory_alert.CopyFrom(alert)
    return result


def leading_alert(verdict: pb.Verdict) -> pb.MemoryAlert | None:
    """Returns the memory alert of `verdict` if it is more urgent than the verdict about time, otherwise None."""
    return verdict.memory_alert if verdict.memory_alert.leads else None


def joined_memory(own: pb.Report, other: pb.Report) -> pb.Memory | None:
    """Returns the memory part of `own` with the findings that only `other`, a report of the same process, has; the part
    of `other` if `own` has none; None if neither has one."""
    if not own.HasField("memory"):
        return other.memory if other.HasField("memory") else None
    joined = pb.Memory()
    joined.CopyFrom(own.memory)
    causes = {finding.cause for finding in own.memory.findings}
    joined.findings.extend(each for each in other.memory.findings if each.cause not in causes)
    return joined


def _most_severe(severity: str, alerts: Sequence[pb.MemoryAlert]) -> pb.MemoryAlert | None:
    """Returns a copy of the most severe of `alerts`. It leads a verdict with `severity` if it is critical, or more
    severe."""
    alert = min(alerts, key=lambda one: _ORDER.index(one.severity), default=None)
    if alert is None:
        return None
    chosen = pb.MemoryAlert()
    chosen.CopyFrom(alert)
    rank = _ORDER.index(severity) if severity in _ORDER else len(_ORDER)
    chosen.leads = chosen.severity == "critical" or _ORDER.index(chosen.severity) < rank
    return chosen
