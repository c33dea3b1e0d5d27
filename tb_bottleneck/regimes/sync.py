"""sync: the device ran dry because the host waited for it, until the queue is full again.

Signal: idle device time inside blocking calls, and the idle dispatching time behind them.
Formula: that time, behind each call at most as much idle time as the call waited / the window. A wait over a busy
device costs nothing.
Threshold: fires at 5 % of the window.
Source: half of traceml's warning level for overheads, 10 % of the step (diagnostics/step_time/policy.py): a wait is
one line of code, and worth naming earlier.
"""

from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.measures.waiting import costly_waits, idle_in_waits, scalar_reads, waiting_lines, waiting_operators
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.05
MOSTLY = 0.5


def judge(measures: Measures) -> Judgement:
    """Waits that mostly read single values are named as such; which line it was, only recorded stacks can tell."""
    reads = measures.value(scalar_reads, otherwise=0.0)
    name = "scalar_reads" if reads > MOSTLY else "blocking_waits"
    evidence = (costly_waits, waiting_operators, waiting_lines, idle_in_waits)
    cause = Cause(name, measures.account.share("sync"), evidence)
    return idle_judgement(measures, "sync", FIRES_AT, (cause,))


RULE = Rule("sync", judge, FIRES_AT)
