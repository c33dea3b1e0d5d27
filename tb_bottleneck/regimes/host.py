"""host: the device is idle while Python outside torch runs.

Signal: idle device time while the launching thread records no operator, call, loader or interruption for over 0.5 ms.
Formula: that time / the window.
Threshold: fires at 10 % of the window.
Source: traceml's warning level for the residual of a step, 10 % (diagnostics/step_time/policy.py).
"""

from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.host_dispatch import host_lines, longest_host_pause, steps_between_pauses
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.10


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Return the judgement. Only recorded stacks show the Python code that ran."""
    return idle_judgement(measures, Regime.HOST, FIRES_AT, _causes)


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    evidence = (longest_host_pause, host_lines, steps_between_pauses)
    return (Cause("host_python", measures.account.share(Regime.HOST), evidence),)


RULE = Rule(Regime.HOST, judge, FIRES_AT)
