"""sync: the device ran dry because the host waited for it, until the queue is full again.

Signal: idle device time inside blocking calls, and the idle dispatching time behind them.
Formula: that time, behind each call at most as much idle time as the call waited / the window. A wait over a busy
device costs nothing.
Threshold: fires at 5 % of the window.
Source: half of traceml's warning level for overheads, 10 % of the step (diagnostics/step_time/policy.py): a wait is
one line of code, and worth naming earlier.
"""

from tb_bottleneck.measures.hosting import blocking_waits
from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.05


def judge(measures: Measures) -> Judgement:
    """Any blocking call will do as evidence; which line made it, only recorded stacks can tell."""
    cause = Cause("blocking_waits", measures.account.share("sync"), (blocking_waits,))
    return idle_judgement(measures, "sync", FIRES_AT, (cause,))


RULE = Rule("sync", judge, FIRES_AT)
