"""Worker processes make the batches: the training no longer waits for one, unless the workers are too slow.

Changes: each fetch takes as long as taking a batch from a queue.
Assumes: workers make batches as fast as is seen now, each on a core of its own.
Bounds: never faster than the workers deliver. Where the training process makes the batches: its time per batch over the
workers needed to keep up, at most the job's cores. Where workers do: the time between their batches, over how many
times as many would keep up. At worst workers take SLOWER_WORKERS times as long, since they share memory, cores and
storage, and so do steps that the CPU computes, since those share them too; at best there are so many workers that
nobody waits, and they slow nobody down.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.intervals import Spans
from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.trace.loader import SINGLE_PROCESS_ITERATOR, loader_iterator, workers_factor, workers_needed
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario

# Taking a ready batch off the queue, and handing its memory over: 0.06 to 0.2 ms.
BATCH_HANDOVER_NS = {Estimate.EXPECTED: 100_000, Estimate.LOW: 200_000, Estimate.HIGH: 60_000}
SLOWER_WORKERS = 1.3
MIN_WAITS = 2


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Shortens the fetches, and sets the floor."""
    floor = _floor(graph)
    if floor is None:
        return None
    cured = without_waiting(graph, estimate)
    if estimate is Estimate.LOW:
        alone = 0.0 if graph.base.recording.on_device else cured.window()
        return cured.with_floor(max(floor, alone) * SLOWER_WORKERS)
    return cured if estimate is Estimate.HIGH else cured.with_floor(floor)


def without_waiting(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """The world in which a batch is always ready to be taken."""
    gap = graph.items.gap.copy(order="K")
    gap[:, Activity.LOAD_BATCH] = np.minimum(gap[:, Activity.LOAD_BATCH], BATCH_HANDOVER_NS[estimate])
    return graph.with_items(gap=gap)


def _floor(graph: ModifiedGraph) -> float | None:
    """The least time in which the window's batches can be made, in ns; None where it is not known who makes them."""
    recording = graph.base.recording
    iterator, workers = loader_iterator(recording), workers_needed(recording)
    fetches = graph.base.spans_named("enumerate(Data")
    if not isinstance(iterator, Measure) or not len(fetches):
        return None
    if iterator.text != SINGLE_PROCESS_ITERATOR:
        more = workers_factor(recording)
        apart = _between_batches(fetches, recording.account.window / len(recording.steps))
        return apart * len(recording.steps) / (more.value if isinstance(more, Measure) else 1.0)
    batch = float(np.median(fetches.ends - fetches.starts))
    return batch * len(recording.steps) / (workers.value if isinstance(workers, Measure) else 1.0)


def _between_batches(fetches: Spans, step: float) -> float:
    """Time from batch to batch that the workers need, in ns.

    A fetch that waited ends when its batch is made, with none ready behind it: so from one such end to another the
    workers made just the batches that were fetched between. Workers deliver in bursts, so steps alone would not tell.
    """
    waited = np.flatnonzero(fetches.ends - fetches.starts > BATCH_HANDOVER_NS[Estimate.LOW])
    if len(waited) < MIN_WAITS:
        return step
    first, last = int(waited[0]), int(waited[-1])
    return float(fetches.ends[last] - fetches.ends[first]) / (last - first)


SCENARIO = Scenario("loader", apply, on_cpu=True)
