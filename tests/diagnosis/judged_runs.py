"""Simulated runs of telemetry, judged: what the tests of its diagnosis share."""

from helpers.simulated_telemetry import FACTS, HEALTHY, SimulatedPhase, simulate

from tb_bottleneck.diagnosis.telemetry import TelemetryReader, judge_telemetry
from tb_bottleneck.schema import bottleneck_pb2 as pb


def judged(*phases: SimulatedPhase, seed: int = 0, facts=None, without=()) -> pb.Report:
    reader = TelemetryReader("/no/such/file")
    reader.telemetry.add(simulate(phases, seed, facts, without))
    return judge_telemetry(reader)


def status_of(report: pb.Report, regime: str) -> pb.RegimeVerdict:
    return next(verdict for verdict in report.regimes if verdict.regime == regime)


def share_of(report: pb.Report, regime: str) -> float:
    return next(row.share for row in report.account if row.regime == regime)


ON_CPU = {**FACTS, "device_kind": "cpu", "torch_threads": 16}
BLIND_ON_CPU = (*HEALTHY, "gpu_utilisation", "device_busy")
