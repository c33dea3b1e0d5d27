"""communication: a collective runs that is not hidden by compute.

Signal: collective kernels on the device outside all other kernels; on a CPU run, collectives on the main thread.
Formula: that time / the window. If DistributedDataParallel sends all gradients in one bucket, half of the time counts
as recoverable: two buckets are the fewest that overlap with the backward pass, which hides the first but not the last.
Threshold: fires at 10 % of the window. Exchanges for portions of a batch (gradient accumulation) are a cause from 1.5
exchanges per optimizer step on (a choice; without such exchanges, the number is 1). One exchange is needed, the others
are recoverable.
Source: torch-tb-profiler's rule for communication, 10 % (tb_plugin/torch_tb_profiler/profiler/data.py). Messages are
small below 1 MB: DistributedDataParallel's own first bucket has this size, the others have 25 MB. A link is slow below
half of the rate of the device's own PCIe slot: no link within one machine is slower.
"""

from dataclasses import replace

from tb_bottleneck.base.measure import Measure, known_value
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.communication.avoidable_exchanges import exchange_limit, exchanged_portions
from tb_bottleneck.bottlenecks.communication.facts import (
    MANY_COLLECTIVES,
    SMALL_BYTES,
    all_to_all_collectives,
    backend,
    buckets,
    bus_bandwidth,
    collective_bytes,
    collectives,
    collectives_after_backward,
    costliest_collective,
    data_parallel_devices,
    hidden_collectives,
    message_size,
    point_to_point_collectives,
    ranks,
    shard_collectives,
    slot_bandwidth,
)
from tb_bottleneck.bottlenecks.communication.network import (
    active_ports,
    nccl_network,
    network_settings,
    socket_channels,
)
from tb_bottleneck.bottlenecks.rule_types import Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording

FIRES_AT = 0.10
HIDDEN, LATE = 0.20, 0.50
# A kind of collective that takes this share of the collectives' time is the one to fix.
MAIN_COLLECTIVE_SHARE = 0.5
SLOW_INTERCONNECT_SHARE = 0.5
# With fewer collectives per forward pass, DistributedDataParallel has one bucket.
SEVERAL_BUCKETS = 2
RECOVERABLE_OF_ONE_BUCKET = 1 - 1 / SEVERAL_BUCKETS
SEVERAL_PORTIONS = 1.5
HOST_BACKENDS = ("gloo", "mpi")


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `communication` for a trace. A trace of one rank shows a slow link only if even the
    fastest large message is slow."""
    recoverable = RECOVERABLE_OF_ONE_BUCKET if _after_backward(measures) and _in_one_bucket(measures) else 1.0
    if recoverable < 1 and (portions := _portions(measures)) > 1:
        recoverable += (1 - 1 / portions) * (1 - recoverable)
    return idle_judgement(measures, Regime.COMMUNICATION, FIRES_AT, _causes, recoverable)


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns the causes of exposed collectives, which are collectives that no computation hides. Called only if the
    rule fires."""
    share = measures.account.share(Regime.COMMUNICATION)
    sizes = (collectives, message_size, collective_bytes, ranks)
    evidence = (costliest_collective, hidden_collectives, bus_bandwidth, *sizes)
    if measures.value(point_to_point_collectives, otherwise=0.0) >= MAIN_COLLECTIVE_SHARE:
        # A pipeline stage that waits for another looks like a slow link with small messages.
        return (Cause("pipeline_bubble", share, evidence),)
    causes = []
    if measures.value(data_parallel_devices, otherwise=0.0) > 1:
        causes.append(Cause("data_parallel", share, (data_parallel_devices, collectives, costliest_collective)))
    if _on_the_host(measures):
        causes.append(Cause("slow_backend", share, (backend, *sizes)))
    if measures.value(socket_channels, otherwise=0.0) and isinstance(measures(active_ports), Measure):
        network = (nccl_network, active_ports, network_settings, bus_bandwidth, *sizes)
        causes.append(Cause("nccl_sockets", share, network))
    elif _slow_link(measures):
        causes.append(Cause("slow_interconnect", share, (bus_bandwidth, slot_bandwidth, *sizes)))
    if _after_backward(measures):
        shown = (hidden_collectives, collectives_after_backward, *sizes)
        one = _in_one_bucket(measures)
        causes.append(Cause("one_bucket", share, (buckets, *shown)) if one else Cause("no_overlap", share, shown))
    if _small(measures):
        causes.append(Cause("small_messages", share, sizes))
    portions = _portions(measures)
    if portions > 1:  # the other causes keep the cost of the one exchange that is needed
        # On a CPU run, the gain is estimated: measured gains exceeded this share.
        shown = (exchanged_portions, hidden_collectives, *sizes)
        synced = Cause("synced_portions", share * (1 - 1 / portions), shown, bounded=measures.on_device)
        causes = [synced, *(replace(cause, cost_share=cause.cost_share / portions) for cause in causes)]
    named = tuple(causes) or (Cause(_by_kind(measures), share, evidence),)
    # On a CPU run, the calls of collectives and the threads of the backend take time from the operators, too.
    return tuple(replace(cause, most=known_value(measures(exchange_limit))) for cause in named)


def _by_kind(measures: Measures[Recording]) -> str:
    """Returns the name of the cause for exposed collectives, by the kind of collective that takes at least
    MAIN_COLLECTIVE_SHARE of the collectives' time. If no kind does, the name is "exposed_collectives"."""
    if measures.value(all_to_all_collectives, otherwise=0.0) >= MAIN_COLLECTIVE_SHARE:
        return "exposed_all_to_all"
    if measures.value(shard_collectives, otherwise=0.0) >= MAIN_COLLECTIVE_SHARE:
        return "exposed_shards"
    return "exposed_collectives"


def _on_the_host(measures: Measures[Recording]) -> bool:
    """Returns True if a training on a device exchanges data by a backend that works on the CPU (HOST_BACKENDS)."""
    name = measures(backend)
    return measures.on_device and isinstance(name, Measure) and name.text in HOST_BACKENDS


def _slow_link(measures: Measures[Recording]) -> bool:
    """Returns True if the bus bandwidth of large messages is below SLOW_INTERCONNECT_SHARE of the bandwidth of the
    device's PCIe slot. Returns False if one of the two bandwidths is not known."""
    reached, given = measures(bus_bandwidth), measures(slot_bandwidth)
    return (
        isinstance(reached, Measure)
        and isinstance(given, Measure)
        and reached.value < SLOW_INTERCONNECT_SHARE * given.value
    )


def _after_backward(measures: Measures[Recording]) -> bool:
    """Returns True if most of the collectives' time is in collectives issued after the backward pass, and if other work
    hides little of the collectives' time."""
    late = measures.value(collectives_after_backward, otherwise=0.0) >= LATE
    return late and measures.value(hidden_collectives, otherwise=1.0) < HIDDEN


def _in_one_bucket(measures: Measures[Recording]) -> bool:
    """Returns True if DistributedDataParallel is known to have fewer than SEVERAL_BUCKETS buckets of gradients."""
    return measures.value(buckets, otherwise=float(SEVERAL_BUCKETS)) < SEVERAL_BUCKETS


def _portions(measures: Measures[Recording]) -> float:
    """Returns the number of exchanges of gradients per optimizer step, or 1 if there are fewer than SEVERAL_PORTIONS.
    Portions are the parts of a batch for which gradients are accumulated."""
    portions = measures.value(exchanged_portions, otherwise=1.0)
    return portions if portions >= SEVERAL_PORTIONS else 1.0


def _small(measures: Measures[Recording]) -> bool:
    """Returns True if there are at least MANY_COLLECTIVES collectives, and their size is below SMALL_BYTES."""
    size = measures.value(message_size, otherwise=float(SMALL_BYTES))
    return size < SMALL_BYTES and measures.value(collectives, otherwise=0.0) >= MANY_COLLECTIVES


RULE = Rule(Regime.COMMUNICATION, judge, FIRES_AT)
