"""Names the operators that grow while the steps of a run become longer, from the traces at its two ends."""

from collections.abc import Sequence

from tb_bottleneck.report.builders.program_places import sentence_about
from tb_bottleneck.schema import bottleneck_pb2 as pb

CAUSE = "growing_steps"
"""The cause of regimes/telemetry/drift.py, whose imports a trace does not need."""
GROWS = 1.3
MAX_NAMED = 3


def add_growth(telemetry: pb.Report, traces: Sequence[pb.Report]) -> None:
    """Adds the operators with the largest growth, and the place that calls them, to the finding about longer steps.

    Nothing is added without this finding or without two traces. The traces are in order of time.
    """
    finding = next((finding for finding in telemetry.findings if finding.cause == CAUSE), None)
    counted = [trace for trace in traces if trace.operators]
    if finding is None or len(counted) < 2:
        return
    before, after = ({row.name: row.per_step for row in trace.operators} for trace in (counted[0], counted[-1]))
    total = [sum(counts.values()) for counts in (before, after)]
    row = finding.evidence.add(unit="text", label="Operators per step in the first and the last trace")
    if total[1] < GROWS * total[0]:
        row.text = f"{total[0]:,.0f} and {total[1]:,.0f}: their number does not grow"
        return
    grown = sorted(after, key=lambda name: before.get(name, 0.0) - after[name])[:MAX_NAMED]
    named = ", ".join(f"{name} {before.get(name, 0.0):,.0f} to {after[name]:,.0f}" for name in grown)
    row.text = f"{total[0]:,.0f} to {total[1]:,.0f}; {named}"
    place = next((row.place for row in counted[-1].operators if row.name == grown[0] and row.HasField("place")), None)
    if place is not None and not finding.where:
        finding.where.append(place)
        if finding is telemetry.findings[0]:
            telemetry.verdict.headline += sentence_about(finding.where)
