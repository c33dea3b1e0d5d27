"""The places of the program at which worker processes make batches, as the monitor sampled them."""

from collections import Counter

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.input_stages import LoaderWork
from tb_bottleneck.measures.user_code.places import MAX_PLACES, Place
from tb_bottleneck.trace.frames.frame_owner import frame_parts
from tb_bottleneck.trace.kernel_names import cut

CAUSES = frozenset({"too_few_workers", "too_few_cores", "cores_limit_workers", "slow_storage", "few_fetches"})
"""Causes of the regime `input` in which the training waits for what its workers do."""


def worker_places(work: LoaderWork | Missing, cause: str) -> tuple[Place, ...]:
    """Returns the places with the most time of making a batch, if workers were sampled and the cause is about them.

    Shares are of the time of all stages: the training waits as long as making a batch takes.
    """
    if isinstance(work, Missing) or work.basis != "samples" or cause not in CAUSES:
        return ()
    times: Counter[str] = Counter()
    for stage in work.stages:
        if stage.place:
            times[stage.place] += stage.ns  # type: ignore[assignment]
    places = []
    for frame, ns in times.most_common(MAX_PLACES):
        file, line, function = frame_parts(frame)
        places.append(Place(ns / max(work.ns, 1.0), cut(file), line, cut(function)))
    return tuple(places)
