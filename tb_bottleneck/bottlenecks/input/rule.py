"""input: the device is idle while the host waits for the next batch or creates it.

Signal: idle device time while the training thread is inside DataLoader.__next__, or computes a batch on the host.
Formula: that time / the window.
Threshold: fires at 5 % of the window; abstains below it if no DataLoader was recorded, since a loader of another kind
appears as Python.
Source: torch-tb-profiler's rule for data loading, 5 % (tb_plugin/torch_tb_profiler/profiler/data.py). Storage is the
cause if frames that read take half of the loader's time, or if slow fetches (calls that return the next batch) exceed
the median fetch by a third of this time in total. A fetch is slow from three times the median on (the method's rule for
outliers). In both cases, more workers would wait for the same storage. Work on batches that workers would only repeat
(bottlenecks/input/batch_work.py) is the cause before both, if it takes half of the loader's time. Too few workers are
the cause only from 6 fetches on, because fewer may be the start of the workers, or one late batch. If the monitor
sampled the workers, and the workers make batches for 90 % of their time, 6 batches are enough. If only one of fewer
fetches waited, the wait is not known to recur, as with an interruption of a single step: the wait may be the conclusion
about the run, but is not recoverable. The wait for the first batch of a run does not recur. With a worker for each
core, more workers would only take turns. Workers that are behind set the pace (bottlenecks/input/loader_workers.py).
"""

import math
from dataclasses import replace

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.host.facts import batch_operator_share, created_share
from tb_bottleneck.bottlenecks.input.batch_work import (
    batches_per_iterator,
    conversion_share,
    handover_share,
    iterator_share,
    sampler_share,
    tensors_per_batch,
    time_per_sample,
)
from tb_bottleneck.bottlenecks.input.loader import (
    MIN_FETCHES,
    WORKER_ITERATOR,
    batches_seen,
    fetches_recorded,
    first_batch_wait,
    loader_fetch,
    loader_idle,
    loader_iterator,
    loader_reads,
    preparing_lines,
    slowest_fetch,
    uneven_fetches,
    usual_fetch,
    waiting_fetches,
)
from tb_bottleneck.bottlenecks.input.loader_workers import (
    MOSTLY_WAITS,
    WORKERS_BEHIND,
    batch_waits,
    cores_available,
    workers_advised,
    workers_behind,
    workers_for_loop,
    workers_needed,
    workers_used,
)
from tb_bottleneck.bottlenecks.input.trace_stages import batch_time, costliest_stage, processes_needed, workers_at_work
from tb_bottleneck.bottlenecks.interruption.facts import MIN_RECURRING_STEPS
from tb_bottleneck.bottlenecks.rule_types import FIRES, Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.process_facts import loader_pins, on_windows, worker_start_method, workers_persist
from tb_bottleneck.measures.trace.uneven_steps import input_limit

FIRES_AT = 0.05
READS, UNEVEN = 0.5, 0.33
# With one core, a worker takes as much time of the core from the training as it saves, unless it waits.
CORES_FOR_WORKER = 2
# The loop makes its batches if its own operators take most of the time that the device is idle for them.
MADE_IN_THE_LOOP = 0.5
# Constant or random values need no data. If creating them takes this part of the time of operators that make batches,
# the other operators do not matter. The share is a choice.
CREATED = 0.8
# What takes the time of making a batch, and how many processes would be fast enough.
STAGES = (costliest_stage, batch_time, processes_needed)
BUSY_STAGES = (workers_at_work, *STAGES)
LOOP = (preparing_lines, loader_idle, workers_for_loop)
# How the workers start: recorded facts.
STARTED = (worker_start_method, workers_persist, on_windows)
# Work that takes this part of the loader's time is its cause; more workers would repeat it. A choice.
MOST_OF_LOADER = 0.5
# An iterator that gives fewer batches was created for one batch. A choice.
SEVERAL_BATCHES = 2
# Reading a sample from memory with Python's calls, and adding it to a batch, took 3.8 to 10 us for five data sets of
# tensors or of rows of arrays. A longer time has work of its own. A choice.
SHORT_SAMPLE_NS = 30_000
# The copies to the device are not needed if its tensors are created there.
COPIES = frozenset({"pageable_copies", "exposed_copies", "blocking_copies", "blocking_uploads"})


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `input` for a trace. The cause depends first on the fetches, then on the kind of the
    loader's iterator. A fetch is one call that returns the next batch."""
    part = 1.0 if _recurs(measures) else 0.0
    judgement = idle_judgement(measures, Regime.INPUT, FIRES_AT, _causes, part, seen_by=batches_seen)
    behind = measures.value(workers_behind, otherwise=0.0) > 0
    doubtful = any(cause.name == "few_fetches" and not cause.certain for cause in judgement.causes)
    fires = judgement.status == FIRES
    return replace(judgement, sets_pace=behind and fires, doubtful=judgement.share if doubtful else 0.0)


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns one cause of the waits for batches. Called only if the rule fires."""
    share = measures.account.share(Regime.INPUT)
    evidence: tuple[MeasureFunction[Recording], ...]
    iterator = measures(loader_iterator)
    kind = iterator.text if isinstance(iterator, Measure) else ""
    made = measures.value(batch_operator_share, otherwise=0.0) >= MADE_IN_THE_LOOP
    if made and measures.value(created_share, otherwise=0.0) >= CREATED:
        return (Cause("created_on_host", share, (preparing_lines, created_share, loader_idle), also_fixes=COPIES),)
    if made:
        return (Cause("batches_in_the_loop", share, LOOP),)
    vectorised = _of_batch_work(measures, share)
    if vectorised is not None:
        return (vectorised,)
    if _waits_for_storage(measures):
        reading = (loader_idle, usual_fetch, slowest_fetch, uneven_fetches, loader_reads, loader_iterator, *STAGES)
        return (Cause("slow_storage", share, reading),)
    cores = measures.value(cores_available, otherwise=math.inf)
    waits = measures.value(batch_waits, otherwise=0.0) >= MOSTLY_WAITS
    if kind == "_SingleProcessDataLoaderIter" and cores < CORES_FOR_WORKER and not waits:
        shown = (loader_idle, loader_fetch, loader_iterator, cores_available, loader_reads, *STAGES)
        return (Cause("too_few_cores", share, shown),)
    if kind == "_SingleProcessDataLoaderIter":
        evidence = (loader_idle, loader_fetch, loader_iterator, workers_needed, cores_available, loader_reads)
        evidence += (batch_waits, *STAGES, loader_pins, on_windows)
        return (Cause("loader_in_main_process", share, evidence),)
    if kind == WORKER_ITERATOR:
        return (_of_workers(measures, share),)
    if isinstance(measures(loader_fetch), Missing):
        return (Cause("batches_in_the_loop", share, LOOP),)
    return (Cause("slow_loader", share, (loader_idle, usual_fetch, slowest_fetch)),)


def _of_batch_work(measures: Measures[Recording], share: float) -> Cause[Recording] | None:
    """Returns the cause of work on batches that neither workers nor storage make shorter, if it takes at least
    MOST_OF_LOADER of the loader's time. `share` is the regime's share of the window."""
    if measures.value(batches_per_iterator, math.inf) < SEVERAL_BATCHES:
        part = measures.value(iterator_share, otherwise=0.0)
        if part >= MOST_OF_LOADER:
            return Cause("iterator_per_batch", share * part, (batches_per_iterator, iterator_share, loader_idle))
    taken = measures.value(handover_share, otherwise=0.0)
    if taken >= MOST_OF_LOADER:
        return Cause("tensor_handover", share * taken, (handover_share, tensors_per_batch, loader_idle, usual_fetch))
    sampler, lists = (measures.value(each, otherwise=0.0) for each in (sampler_share, conversion_share))
    if sampler >= MOST_OF_LOADER:
        return Cause("slow_sampler", share * sampler, (sampler_share, loader_idle, batch_time))
    if measures.value(time_per_sample, math.inf) <= SHORT_SAMPLE_NS:
        return Cause("samples_one_by_one", share, (time_per_sample, loader_idle, batch_time))
    if lists >= MOST_OF_LOADER:
        return Cause("tensors_from_lists", share * lists, (conversion_share, loader_idle, costliest_stage))
    return None


def _of_workers(measures: Measures[Recording], share: float) -> Cause[Recording]:
    """Returns the cause of waits for batches from worker processes. `share` is the regime's share of the window, and is
    the cost. Few fetches do not show whether the workers keep up, so they give a cause of their own."""
    if _few_fetches(measures):
        seen = (loader_idle, slowest_fetch, fetches_recorded, loader_iterator, *STARTED)
        if isinstance(measures(first_batch_wait), Measure):
            return Cause("first_batch", share, seen, bounded=False, recurs=False)
        return Cause("few_fetches", share, seen, certain=_recurs(measures))
    waits = (loader_idle, usual_fetch, slowest_fetch, loader_iterator)
    workers, cores = measures(workers_used), measures(cores_available)
    waits_mostly = measures.value(batch_waits, otherwise=0.0) >= MOSTLY_WAITS
    if (
        isinstance(workers, Measure)
        and isinstance(cores, Measure)
        and workers.value >= cores.value
        and not waits_mostly
    ):
        return Cause("cores_limit_workers", share, (*waits, workers_used, cores_available, *BUSY_STAGES, *STARTED))
    shown = (*waits, cores_available, workers_advised, batch_waits, *BUSY_STAGES, *STARTED)
    return Cause("too_few_workers", share, shown)


def _recurs(measures: Measures[Recording]) -> bool:
    """Returns True if the waits for batches can be expected in later steps. Returns False if there are few fetches (see
    `_few_fetches`), and fewer than MIN_RECURRING_STEPS of these fetches waited."""
    waited = measures.value(waiting_fetches, otherwise=0.0)
    return not _few_fetches(measures) or waited >= MIN_RECURRING_STEPS


def _few_fetches(measures: Measures[Recording]) -> bool:
    """Returns True if workers make the batches, and fewer than MIN_FETCHES fetches were recorded, which do not show
    whether the workers keep up.

    Returns False if samples of the workers show that they make batches for at least WORKERS_BEHIND of the time, because
    the workers are then known not to keep up.
    """
    iterator = measures(loader_iterator)
    in_workers = isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR
    if in_workers and measures.value(workers_at_work, otherwise=0.0) >= WORKERS_BEHIND:
        return False
    return in_workers and measures.value(fetches_recorded, otherwise=float(MIN_FETCHES)) < MIN_FETCHES


def _waits_for_storage(measures: Measures[Recording]) -> bool:
    """Returns True if frames that read take at least READS of the loader's time, or if slow fetches exceed the median
    fetch by at least UNEVEN of the loader's time."""
    reads = measures.value(loader_reads, otherwise=0.0)
    return reads >= READS or measures.value(uneven_fetches, otherwise=0.0) >= UNEVEN


RULE = Rule(Regime.INPUT, judge, FIRES_AT, input_limit)
