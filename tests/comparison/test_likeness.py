"""The same work is told from other work by the operators that launch it."""

import pytest
from comparison.sides import judged, repeated

from tb_bottleneck.comparison.likeness import LIKE, likeness


def alike(tmp_path, a, b):
    return likeness(judged(tmp_path, a).recording, judged(tmp_path, b).recording)


def test_another_loader_does_not_make_it_other_work(tmp_path):
    a = repeated(9, loader="####....", op="....##..", launch=".....|..", gpu="......##")
    b = repeated(9, workers="#....", op=".##..", launch="..|..", gpu="...##")
    assert alike(tmp_path, a, b) == 1


def test_four_times_the_operators_are_other_work(tmp_path):
    one = repeated(9, op="##......", launch=".|......", gpu="..######")
    four = repeated(9, op="#.#.#.#.", launch="|.|.|.|.", gpu=".#.#.#.#")
    found = alike(tmp_path, one, four)
    assert found == pytest.approx(1 / 4)
    assert found < LIKE


def test_runs_without_operators_are_not_called_unlike(tmp_path):
    drawing = repeated(9, loader="##..", gpu="..##")
    assert alike(tmp_path, drawing, drawing) == 1


def test_the_same_work_in_smaller_portions_is_the_same_work(tmp_path, monkeypatch):
    """Gradients of four passes are added up on one side, and come from one pass on the other."""
    four = repeated(9, op="#.#.#.#.", launch="|.|.|.|.", gpu=".#.#.#.#")
    passes = iter((1, 4))
    monkeypatch.setattr("tb_bottleneck.comparison.likeness.passes_of", lambda recording: next(passes))
    assert alike(tmp_path, repeated(9, op="##......", launch=".|......", gpu="..######"), four) == 1
