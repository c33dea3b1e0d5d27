"""A first epoch that fills a cache is left out; epochs that are alike, or grow faster for another reason, are not."""

import numpy as np
import pytest
from helpers.telemetry_rows import packet, recording_of

from tb_bottleneck.attribution.telemetry.first_epoch import first_epoch_of

EPOCH, STEPS = 50, 200
NUMBERS = np.arange(STEPS)
STARTS = np.where(NUMBERS % EPOCH == 0, 1.0, 0.0)


def found(wait, rest=10.0, starts=STARTS):
    columns = {"loader_wait": wait, "epoch_start": starts}
    return first_epoch_of(recording_of(packet(wait + rest, **columns)).telemetry)


def test_the_first_epoch_fills_a_cache():
    epoch = found(np.where(NUMBERS < EPOCH, 70.0, 2.0))
    assert epoch is not None
    assert (epoch.steps, round(epoch.times_longer, 2)) == (EPOCH, round(80 / 12, 2))


@pytest.mark.parametrize(
    ("wait", "starts"),
    [
        (np.full(STEPS, 70.0), STARTS),
        (np.where(NUMBERS < EPOCH, 70.0, 50.0), STARTS),
        (np.where(NUMBERS < EPOCH, 0.5, 0.1), STARTS),
        (np.where(STARTS > 0, 500.0, 2.0), STARTS),
        (np.where(NUMBERS < EPOCH, 70.0, 2.0), np.where(NUMBERS == 0, 1.0, 0.0)),
        (np.where(NUMBERS < 180, 70.0, 2.0), np.where(NUMBERS % 180 == 0, 1.0, 0.0)),
    ],
    ids=["equal", "a little faster", "short waits", "new workers", "one epoch", "the second has only begun"],
)
def test_other_runs_are_judged_as_a_whole(wait, starts):
    assert found(wait, starts=starts) is None
