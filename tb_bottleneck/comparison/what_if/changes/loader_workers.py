"""Another number of loader workers."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.loader_throughput import LONGEST_HANDOVER_NS, workers_are_behind
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.loader import SINGLE_PROCESS_ITERATOR, fetches, loader_iterator
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.units import share_text

# Taking a ready batch off the queue, and handing its memory over.
HANDOVER_NS = {Estimate.EXPECTED: 100_000, Estimate.LOW: LONGEST_HANDOVER_NS, Estimate.HIGH: 60_000}
# The training process itself gets slower beside its workers, which share its cores and its memory: of the public
# ResNet-50 recordings with 0 and 4 workers, the second one's step took 12 % longer than is foretold from the first.
BESIDE_WORKERS = 0.15
# Where the CPU trains as well, they are the model's own cores and caches: in the demo's pair, 0 and 2 workers on two
# cores, the model itself takes 1.35 times as long beside them.
BESIDE_ON_CPU = 0.35
# Workers share memory, cores and storage, so each is slower than one alone.
WORKER_SLOWDOWN = {Estimate.EXPECTED: 1.1, Estimate.LOW: 1.3, Estimate.HIGH: 1.0}
MAX_WORKERS = 1e6  # more cores or workers than this nobody has
_NAMES = ("workers", "num_workers", "loader_workers")


def change_workers(recording: Recording, number: int) -> Change:
    """Batches made by `number` worker processes.

    Raises:
        Unpredictable: who makes the batches now, and how fast, is not known.
    """
    iterator = loader_iterator(recording)
    rows = fetches(recording)
    if isinstance(iterator, Missing):
        raise CannotPredict(f"Who makes the batches is not known: {iterator.because}.")
    if number > MAX_WORKERS:
        raise CannotPredict("Nobody has so many workers.")
    if number < 1:
        raise CannotPredict("Without workers the training process makes the batches; that is not simulated.")
    events = recording.trace.events
    inside = rows[recording.in_window(events.start[rows])]
    if not len(inside):
        raise CannotPredict("No batch was fetched within the judged steps.")
    took = events.duration[inside]
    alone = iterator.text == SINGLE_PROCESS_ITERATOR
    if not alone and not workers_are_behind(recording):
        raise CannotPredict("The workers keep up already, so how fast they could be is not seen.")
    now = 0 if alone else _workers_now(recording)
    usable, used = _at_once(recording, number), _at_once(recording, now)
    batches = len(inside)
    per_batch = float(np.median(took)) if alone else recording.account.window / batches * used

    def change(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
        gap = graph.items.gap.copy()
        gap[:, Activity.LOAD_BATCH] = np.minimum(gap[:, Activity.LOAD_BATCH], HANDOVER_NS[estimate])
        return graph.with_items(gap=gap).with_floor(
            per_batch * batches / usable * (WORKER_SLOWDOWN[estimate] if usable > used else 1.0)
        )

    beside = BESIDE_WORKERS if recording.on_device else BESIDE_ON_CPU
    told = [
        f"beside its workers the training process may take {share_text(beside)} longer, so the interval says",
        "workers make batches as fast as is seen now, a tenth slower for what they share; 1.3 times slower at worst",
        f"the {now} worker{'s' if now > 1 else ''} of now" if now else "the training process makes them now",
    ]
    if usable < number:
        told.append(f"only {usable} of them work{'s' if usable == 1 else ''} at once: the job has no more cores")
    elif number > max(now, 1) and _cores(recording) is None:
        told.append(f"the job has cores for {number} of them: how many it has was not recorded")
    return Change(
        f"the loader had {number} worker{'s' if number > 1 else ''}", tuple(told), modify=change, slower=beside
    )


def _at_once(recording: Recording, workers: int) -> int:
    """How many of so many workers can work at once: no more than the job has cores, where that was recorded."""
    cores = _cores(recording)
    return workers if cores is None else min(workers, cores)


def _cores(recording: Recording) -> int | None:
    """The cores of the job; None where that was not recorded."""
    cores = recording.trace.header.context.get("cores")
    return int(cores) if isinstance(cores, int | float) and 1 <= cores < MAX_WORKERS else None


def _workers_now(recording: Recording) -> int:
    context = recording.trace.header.context
    loader = context.get("loader")
    tables = [context, loader] if isinstance(loader, dict) else [context]
    for table in tables:
        for name in _NAMES:
            value = table.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_WORKERS:
                return value
    raise CannotPredict("How many workers make the batches now is not recorded; the monitor's context records it.")
