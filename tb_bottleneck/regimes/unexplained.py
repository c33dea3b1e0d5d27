"""unexplained: nothing recorded explains this time.

Signal: idle device time before operations that were already queued, and kernels with unknown names.
Formula: that time / the window.
Threshold: fires at 20 % of the window.
Source: above a fifth of the window every other share is uncertain by traceml's critical level, 20 %.
"""

from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.kernels import unknown_kernels
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import CLEAR, FIRES, Judgement, Rule

FIRES_AT = 0.20


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Return the judgement. It has no cause and no fix: it lowers the confidence in the other regimes."""
    share = measures.account.share(Regime.UNEXPLAINED)
    return Judgement(FIRES if share >= FIRES_AT else CLEAR, share, evidence=(unknown_kernels,))


RULE = Rule(Regime.UNEXPLAINED, judge, FIRES_AT)
