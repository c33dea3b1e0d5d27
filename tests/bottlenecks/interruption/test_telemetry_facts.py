"""Which interruption the time of long steps belongs to."""

import numpy as np
import pytest
from helpers.telemetry_rows import packet, recording_of

from tb_bottleneck.bottlenecks.interruption import telemetry_rule as interruption
from tb_bottleneck.measures.measure_set import Measures

STEPS = np.arange(200)
LONG = STEPS % 4 == 3
KINDS = [
    ("checkpoint", "checkpointing"),
    ("logging", "logging"),
    ("garbage_collection", "garbage_collection"),
    ("evaluation", "evaluation"),
]


def causes(**interrupted: np.ndarray) -> dict[str, float]:
    """Returns the causes and their costs if each fourth step takes 60 ms and the others 10 ms.

    `interrupted` has the recorded times of interruptions in ms, by step column.
    """
    wall = np.where(LONG, 60.0, 10.0)
    phases = {name: np.full(200, 3.0) for name in ("forward", "backward", "optimizer")}
    recording = recording_of(packet(wall, **phases, **interrupted), {"device_kind": "cpu"})
    return {cause.name: cause.cost_share for cause in interruption.judge(Measures(recording)).causes}


@pytest.mark.parametrize(("column", "cause"), KINDS)
def test_what_makes_steps_long_belongs_to_the_interruption_that_is_only_in_them(column, cause):
    """`save` called torch.save, 3 ms, and then copied the file to a slow disk, 50 ms: pauses of an unknown kind."""
    assert causes(**{column: np.where(LONG, 2.0, 0.0)}) == {cause: pytest.approx(50 / 90, abs=0.02)}


@pytest.mark.parametrize(
    "seldom",
    [
        np.where(STEPS % 2 == 1, 2.0, 0.0),  # also in steps that are not long
        np.where(STEPS % 8 == 7, 2.0, 0.0),  # in half of the long steps
        np.where((STEPS + 1) % 4 == 3, 2.0, 0.0),  # in the step before
    ],
)
def test_pauses_without_this_interruption_stay_of_an_unknown_kind(seldom):
    found = causes(checkpoint=seldom)
    assert found["periodic_pauses"] > 0.5
    assert found.get("checkpointing", 0.0) < 0.1
