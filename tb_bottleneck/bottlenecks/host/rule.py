"""host: the device is idle while Python outside torch runs, or operators compute on the host.

Signal: idle device time while the launching thread records no operator, call, loader or interruption for over 0.5 ms,
or runs an operator of over 0.1 ms that makes no runtime call.
Formula: that time / the window.
A pause before the first work of the device, in a recording without steps, may be the start of the program. Such a pause
was seen only once, so it does not count as recoverable.
Threshold: fires at 10 % of the window.
Source: traceml's warning level for the residual of a step, 10 % (diagnostics/step_time/policy.py).
"""

from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.host.facts import (
    TRACED_LEFT,
    host_operator_share,
    host_operator_time,
    host_operators,
    host_rows_recorded,
    idle_before_first_work,
    longest_host_pause,
    steps_between_pauses,
)
from tb_bottleneck.bottlenecks.rule_types import Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.process_facts import python_tracer
from tb_bottleneck.measures.trace.uneven_steps import host_limit

FIRES_AT = 0.10
# If at least this part of the regime's time may be the start of the program, `host_python` is not a certain cause.
MAIN_PART = 0.5


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `host` for a trace. Causes: operators that compute on the host, and Python code outside
    torch."""
    recurring = 1 - _at_start(measures)
    return idle_judgement(measures, Regime.HOST, FIRES_AT, _causes, recurring, seen_by=host_rows_recorded)


def _at_start(measures: Measures[Recording]) -> float:
    """Returns the part (0 to 1) of the regime's time that is before the first work of the device in a recording without
    steps, and may be the start of the program. Returns 0 if the regime owns no time."""
    share = measures.account.share(Regime.HOST)
    return min(measures.value(idle_before_first_work, otherwise=0.0) / share, 1.0) if share else 0.0


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns one or two causes, the costliest first. The second cause is left out if it costs less than FIRES_AT.
    If a tracer of Python was on, it is the cause in place of Python: what that takes, a recording without it shows."""
    share = measures.account.share(Regime.HOST)
    computing = min(measures.value(host_operator_share, otherwise=0.0), share)
    operators = Cause("host_operators", computing, (host_operators, host_operator_time, host_operator_share))
    recurring = _at_start(measures) < MAIN_PART
    python = Cause("host_python", share - computing, (longest_host_pause, steps_between_pauses), certain=recurring)
    if isinstance(measures(python_tracer), Measure):
        python = Cause("python_tracer", (1 - TRACED_LEFT) * (share - computing), (python_tracer, longest_host_pause))
    first, second = sorted((python, operators), key=lambda cause: -cause.cost_share)
    return (first, second) if second.cost_share >= FIRES_AT else (first,)


RULE = Rule(Regime.HOST, judge, FIRES_AT, host_limit)
