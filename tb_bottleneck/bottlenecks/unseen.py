"""communication and sync by telemetry: no signal shows their time, so these rules never fire.

Signal: the number of processes; the device's idle time inside the phases of a step.
Formula: none: collectives run in parallel with other kernels, and a wait while the device is busy costs nothing.
Threshold: communication abstains from two processes on. sync abstains if the idle time, which is that of waits and
launches together, reaches the threshold for traces; otherwise both are clear.
Source: bottlenecks/communication/rule.py, bottlenecks/sync/rule.py.
"""

from collections.abc import Mapping

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.communication import rule as communication
from tb_bottleneck.bottlenecks.input.pipeline import device_idle
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, Judgement, Rule
from tb_bottleneck.bottlenecks.sync import rule as sync
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import utilisation
from tb_bottleneck.measures.telemetry.host import idle_inside_phases, world_size

_Signal = MeasureFunction[TelemetryRecording]


def _rule(
    regime: Regime, fires_at: float, signal: _Signal, most: float, unseen: str, needs: tuple[_Signal, ...]
) -> Rule[TelemetryRecording]:
    """Returns the rule that abstains, with the reason `unseen`, if `signal` is at least `most`, or if one of `needs`
    is missing (for sync, on a device only)."""

    def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
        for needed in map(measures, needs):
            if isinstance(needed, Missing) and (measures.on_device or regime is not Regime.SYNC):
                return Judgement(ABSTAINS, 0.0, missing=needed.because)
        if measures.value(signal, 0.0) >= most:
            return Judgement(ABSTAINS, 0.0, missing=unseen)
        return Judgement(CLEAR, 0.0)

    return Rule(regime, judge, fires_at)


_RULES = (
    _rule(
        Regime.COMMUNICATION,
        communication.FIRES_AT,
        signal=world_size,
        most=2,
        unseen="collectives are visible only in traces",
        needs=(world_size,),
    ),
    _rule(
        Regime.SYNC,
        sync.FIRES_AT,
        signal=idle_inside_phases,
        most=sync.FIRES_AT,
        unseen="only a trace shows which part of the idle time follows a wait",
        needs=(device_idle, utilisation),
    ),
)

UNSEEN: Mapping[str, Rule[TelemetryRecording]] = {rule.regime: rule for rule in _RULES}
"""The rules of the regimes whose time telemetry never shows, by regime."""
