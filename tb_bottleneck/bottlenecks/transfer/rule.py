"""transfer: a copy between host and device runs, or is staged, with no kernel in parallel.

Signal: copies on the device outside all kernels, and idle device time inside a copy call that blocks.
Formula: that time / the window.
Threshold: fires at 5 % of the window.
Source: TraceLens reports exposed copies from 5 % of the GPU's time on. The link is a cause if the fastest copies of at
least 1 MB from pinned memory stay below 80 % of the rate that such copies reach over the device's own slot (STAS,
ml-engineering: 80 to 88 % of a link's raw rate). Copies to the host are the cause if they take half of the exposed
time (without a kernel in parallel): pinning the memory that is copied to the device does not make copies to the host
faster.
"""

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.rule_types import Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.bottlenecks.transfer.facts import (
    bytes_copied_back,
    copies_to_device,
    copy_back_share,
    host_copies,
    link_bandwidth,
    pageable_bandwidth,
    pageable_copies,
    pinned_bandwidth,
    recorded_link,
)
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.process_facts import loader_pins

FIRES_AT = 0.05
SLOW_LINK_SHARE = 0.8
# Copies to the host are the cause if they take half of the time, and pageable copies if they have a quarter of the
# bytes: a few pageable bytes, such as labels, are not the reason that large pinned copies are exposed.
MAIN_COPY_SHARE, MIN_PAGEABLE_SHARE = 0.5, 0.25
# The waits of the host for such copies.
UPLOADS = frozenset({"blocking_uploads"})


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `transfer` for a trace. Causes: large results, pageable memory, blocking copies, a
    degraded link. ROCm does not record whether memory is pageable."""
    return idle_judgement(measures, Regime.TRANSFER, FIRES_AT, _causes)


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns the main cause of the copies' time, after the cause `degraded_link` if the link is slow. Called only if
    the rule fires."""
    share = measures.account.share(Regime.TRANSFER)
    pageable = measures(pageable_copies)
    if measures.value(copy_back_share, otherwise=0.0) >= MAIN_COPY_SHARE:
        causes = [Cause("large_results", share, (copy_back_share, bytes_copied_back, host_copies))]
    elif isinstance(pageable, Missing):
        causes = [Cause("exposed_copies", share, (host_copies, copies_to_device, pageable_copies), also_fixes=UPLOADS)]
    elif pageable.value > MIN_PAGEABLE_SHARE * measures.value(host_copies, otherwise=0.0):
        evidence = (host_copies, pageable_copies, pageable_bandwidth, pinned_bandwidth, link_bandwidth, loader_pins)
        causes = [Cause("pageable_copies", share, evidence, also_fixes=UPLOADS)]
    else:
        causes = [Cause("blocking_copies", share, (host_copies, copies_to_device, pinned_bandwidth, link_bandwidth))]
    if _slow_link(measures):
        causes.insert(0, Cause("degraded_link", share, (pinned_bandwidth, link_bandwidth, recorded_link, host_copies)))
    return tuple(causes)


def _slow_link(measures: Measures[Recording]) -> bool:
    """Returns True if the fastest copies from pinned memory stay below SLOW_LINK_SHARE of the rate of the device's
    slot. Returns False if one of the two is not known."""
    reached, given = measures(pinned_bandwidth), measures(link_bandwidth)
    return isinstance(reached, Measure) and isinstance(given, Measure) and reached.value < SLOW_LINK_SHARE * given.value


RULE = Rule(Regime.TRANSFER, judge, FIRES_AT)
