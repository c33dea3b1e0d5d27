"""The situation of a run that its telemetry judges, beside a problem. Traces do not need the modules of this one."""

from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device_utilisation import own_work
from tb_bottleneck.measures.telemetry.input_pipeline import loader_wait_time
from tb_bottleneck.measures.telemetry.step_phases import timed_phase_count
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes import compute, input
from tb_bottleneck.regimes.judge import Conclusion
from tb_bottleneck.report.builders.situation import beside_problem, rest_of


def telemetry_situation(measures: Measures[TelemetryRecording], conclusion: Conclusion) -> str:
    """Returns the situation of a run that telemetry judges; empty if its phases or its device's work are not known."""
    known = isinstance(measures(own_work), Measure) and isinstance(measures(timed_phase_count), Measure)
    if conclusion.regime in (Regime.UNEXPLAINED, Regime.GPU_UNUSED) or not known:
        return ""
    account = measures.account
    waits = isinstance(measures(loader_wait_time), Measure)
    data = "unseen" if not waits else "complex" if account.share(Regime.INPUT) >= input.FIRES_AT else "simple"
    rest = rest_of(account)
    is_large = measures.value(own_work, 0.0) >= compute.FIRES_AT * rest > 0
    return beside_problem(is_large, data, measures.on_device)
