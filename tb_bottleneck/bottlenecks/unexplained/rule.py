"""unexplained: nothing recorded explains this time, or why some steps have more of it.

Signal: idle device time before operations that were already queued, and kernels with unknown names; and steps that
work for much longer than the others.
Formula: that time / the window. For long steps: their working time beyond that of the median step / the window.
Threshold: fires at 20 % of the window; for long steps at 10 %.
Source: if more than a fifth of the window is unexplained, the shares of all other regimes are uncertain (traceml's
critical level, 20 %). For long steps, traceml's warning level, 10 %; a step is long from twice the median on.
"""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.kernels import unknown_kernels
from tb_bottleneck.bottlenecks.rule_types import CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.uneven_steps import (
    judged_steps,
    uneven_step_factor,
    uneven_step_operators,
    uneven_steps,
    unexplained_excess,
)

FIRES_AT = 0.20
LONG_STEPS_FIRE_AT = 0.10


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `unexplained` for a trace. No fix is known to save any of the time. A large share lowers
    the confidence in the verdicts of other regimes. The only cause is long steps."""
    share, excess = measures.account.share(Regime.UNEXPLAINED), measures.value(unexplained_excess, otherwise=0.0)
    causes: tuple[Cause[Recording], ...] = ()
    if excess >= LONG_STEPS_FIRE_AT:
        seen = (uneven_steps, judged_steps, uneven_step_factor, uneven_step_operators)
        causes = (Cause("uneven_steps", excess, seen, bounded=False),)
    status = FIRES if share >= FIRES_AT or causes else CLEAR
    return Judgement(status, share, causes=causes, evidence=(unknown_kernels,))


RULE = Rule(Regime.UNEXPLAINED, judge, FIRES_AT)
