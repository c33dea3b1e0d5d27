"""Batches are made beside the training, whatever makes them: a loader whose kind was not recorded.

Changes: each fetch takes as long as taking a batch from a queue.
Assumes: batches are made as fast as now, one after the other.
Bounds: never faster than one maker delivers. At worst only fetches of unusual length get shorter, to the median one,
since nothing tells that batches are not made beside the training already; at best nobody waits for a batch.
"""

from tb_bottleneck.replay.scenarios import loader, storage
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.replay.world import Case, World


def cure(world: World, case: Case) -> World | None:
    """Shortens the fetches; None where none were recorded."""
    fetches, recording = world.facts.named("enumerate(Data"), world.facts.recording
    if not len(fetches):
        return None
    if case is Case.LOW:
        return storage.evened(world, staying=0.0)
    waiting_less = loader.without_waiting(world, case)
    mean = fetches.total() / len(fetches)
    return waiting_less if case is Case.HIGH else waiting_less.at_least(mean * len(recording.steps))


SCENARIO = Scenario("pipeline", cure, on_cpu=True)
