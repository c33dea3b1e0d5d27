"""sync: the device is idle because the host waited for it, until the launch queue is filled again.

Signal: idle device time inside blocking calls, and the idle dispatching time after them.
Formula: that time / the window; the idle time counted after a call is at most as long as the call waited. A wait while
the device is busy costs nothing.
Threshold: fires at 5 % of the window.
Source: half of traceml's warning level for overheads, 10 % of the step (diagnostics/step_time/policy.py): a wait is
one line of code, and worth reporting earlier. The kinds of waits are in bottlenecks/sync/facts.py; the costliest
kind is the cause. If many waits are of kinds that cost too little to be named, removing a named kind would only make
the next wait longer: then all kinds together are a cause.
"""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.communication.facts import data_parallel_devices, devices_used, idle_during_other_devices
from tb_bottleneck.bottlenecks.host.facts import runtime_calls
from tb_bottleneck.bottlenecks.rule_types import Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.bottlenecks.sync.facts import (
    MIN_WAIT_KIND_SHARE,
    costly_reads,
    costly_waits,
    explicit_waits,
    idle_in_waits,
    kinds_of_waits,
    minor_kind_waits,
    read_waits,
    shape_waits,
    upload_waits,
    waiting_operators,
)
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.trace import Recording

FIRES_AT = 0.05
# From this many reads per step on, one read of all values can replace them.
SEVERAL_READS = 2.0
# Kinds of waits without a finding of their own matter if they have at least this share of the number of all waits. A
# kind needs the same share of the cost for a finding of its own.
MIN_MINOR_SHARE = MIN_WAIT_KIND_SHARE
# Fewer waits per step can be removed one by one; a loop over items has more. This number is a choice.
SEVERAL_WAITS = 5.0
# One kind with this share of the cost is the cause: its fix comes first. This share is a choice.
ALONE = 0.85
# If another device of the process works for this part of the regime's time, the host waits for that device.
OTHER_DEVICES_SHARE = 0.5

KINDS: dict[str, MeasureFunction[Recording]] = {
    "scalar_reads": read_waits,
    "blocking_uploads": upload_waits,
    "data_dependent_shapes": shape_waits,
    "explicit_waits": explicit_waits,
}
"""By name of the cause, which is a kind of wait: the measure of this kind's share of the cost of all waits."""


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `sync` for a trace. The causes are the kinds of waits that cost most, the costliest
    first."""
    return idle_judgement(
        measures, Regime.SYNC, FIRES_AT, _causes, seen_by=runtime_calls if measures.on_device else None
    )


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns the kinds of waits with at least MIN_WAIT_KIND_SHARE of the cost as causes, the costliest first. If many
    waits are of cheaper kinds, the first cause is all kinds together. Called only if the rule fires."""
    share = measures.account.share(Regime.SYNC)
    in_turns = measures.value(idle_during_other_devices, otherwise=0.0) >= OTHER_DEVICES_SHARE * share
    if in_turns and not measures.value(data_parallel_devices, otherwise=0.0):
        return (Cause("devices_take_turns", share, (idle_during_other_devices, devices_used), bounded=False),)
    parts = {name: measures.value(measure, otherwise=0.0) for name, measure in KINDS.items()}
    named = sorted((name for name, part in parts.items() if part >= MIN_WAIT_KIND_SHARE), key=lambda name: -parts[name])
    causes = tuple(_cause(measures, name, share * parts[name]) for name in named)
    several = measures.value(costly_waits, otherwise=0.0) >= SEVERAL_WAITS and max(parts.values()) < ALONE
    if causes and several and measures.value(minor_kind_waits, otherwise=0.0) >= MIN_MINOR_SHARE:
        evidence = (costly_waits, kinds_of_waits, minor_kind_waits)
        return (Cause("waits_combined", share, evidence), *causes)
    return causes or (_cause(measures, "blocking_waits", share),)


def _cause(measures: Measures[Recording], name: str, share: float) -> Cause[Recording]:
    """Returns the cause for the kind of wait `name`, a key of KINDS, with the cost `share` (share of the window). Many
    scalar reads per step become the cause `metric_reads`."""
    waits = costly_reads if name == "scalar_reads" else costly_waits
    if name == "scalar_reads" and measures.value(costly_reads, otherwise=0.0) >= SEVERAL_READS:
        name = "metric_reads"
    return Cause(name, share, (waits, waiting_operators, idle_in_waits))


RULE = Rule(Regime.SYNC, judge, FIRES_AT)
