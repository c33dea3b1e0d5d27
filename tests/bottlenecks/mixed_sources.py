"""Rules that name measures of the wrong evidence source. test_mixed_sources.py checks that each one is a type error."""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.loader import loader_idle
from tb_bottleneck.bottlenecks.input.pipeline import device_idle
from tb_bottleneck.bottlenecks.rule_types import FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.trace import Recording


def takes_a_trace_measure(measures: Measures[TelemetryRecording]) -> float:
    measures(device_idle)
    measures(loader_idle)  # type: ignore[arg-type]
    return measures.value(loader_idle, 0.0)  # type: ignore[arg-type]


def judge_telemetry(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    cause = Cause("slow_loader", 0.1, (device_idle,))
    return Judgement(FIRES, 0.1, causes=(cause,), evidence=(loader_idle,))  # type: ignore[arg-type]


def cause_from_both(measures: Measures[TelemetryRecording]) -> Cause[TelemetryRecording]:
    return Cause("slow_loader", 0.1, (device_idle, loader_idle))  # type: ignore[arg-type]


def judge_trace(measures: Measures[Recording]) -> Judgement[Recording]:
    return Judgement(FIRES, 0.1, evidence=(loader_idle,))


TELEMETRY_RULE: Rule[TelemetryRecording] = Rule(Regime.INPUT, judge_telemetry, 0.05)
MIXED_RULE: Rule[TelemetryRecording] = Rule(Regime.INPUT, judge_trace, 0.05)  # type: ignore[arg-type]
