"""Test that verdicts on the second simulator's runs stay as good as they were measured."""

from second_simulator.programs import PROGRAMS
from second_simulator.score import judged

FLOOR = 14
"""Right verdicts on every second kind of program; 15 of 19 were measured."""


def test_verdicts_on_runs_of_an_independent_simulator() -> None:
    runs = judged(range(0, len(PROGRAMS), 2))
    wrong = [f"{run.kind}: {run.answer}, not {sorted(run.truth.accepted)}" for run in runs if not run.right]
    assert len(runs) - len(wrong) >= FLOOR, wrong
