"""interruption: the device is idle while something off the steady cadence runs on the host.

Signal: idle device time inside checkpointing, logging, evaluation, garbage collection, or code that runs for the first
time.
Formula: that time / the window.
Threshold: fires at 5 % of the window; abstains below it where Python frames were not recorded, since most of these show
only there.
Source: half of traceml's warning level for overheads, 10 % of the step (diagnostics/step_time/policy.py): an
interruption is one call, and worth naming earlier.
"""

from tb_bottleneck.measures.hosting import checkpoints, collections, loggings, what_interrupts
from tb_bottleneck.measures.measures import MeasureFunction, Measures
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.05


def judge(measures: Measures) -> Judgement:
    """The costliest of checkpointing, logging and garbage collection is the cause; the account says what it owns."""
    suspects: dict[str, MeasureFunction] = {
        "checkpointing": checkpoints,
        "logging": loggings,
        "garbage_collection": collections,
    }
    costs = {name: measures.value(measure, otherwise=0.0) for name, measure in suspects.items()}
    name = max(costs, key=lambda suspect: costs[suspect])
    share = measures.account.share("interruption")
    found = (name, suspects[name]) if costs[name] > 0 else ("other_interruption", what_interrupts)
    cause = Cause(found[0], share, (found[1], what_interrupts))
    return idle_judgement(measures, "interruption", FIRES_AT, (cause,), seen_by=checkpoints)


RULE = Rule("interruption", judge, FIRES_AT)
