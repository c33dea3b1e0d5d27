"""Test that verdicts on the second simulator's runs stay as good as they were measured."""

from second_simulator.programs import PROGRAMS
from second_simulator.score import judged

FLOOR = 30
"""Right verdicts on one run per kind of program; 32 of 37 were measured."""


def test_verdicts_on_runs_of_an_independent_simulator() -> None:
    runs = judged(range(len(PROGRAMS)))
    wrong = [f"{run.kind}: {run.answer}, not {sorted(run.truth.accepted)}" for run in runs if not run.right]
    assert len(runs) - len(wrong) >= FLOOR, wrong
