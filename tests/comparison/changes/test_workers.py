"""Another number of workers: known where the training waits for them, refused where nothing tells how fast they are."""

import pytest
from comparison.sides import context, judged, repeated

from tb_bottleneck.comparison.changes.change import Unpredictable
from tb_bottleneck.comparison.changes.workers import to_workers
from tb_bottleneck.comparison.what_if import Asked, what_if

SLOW_WORKERS = repeated(9, workers="######....", gpu="......####", sync="......####")
FAST_WORKERS = repeated(9, workers="#.........", gpu=".########.")


def test_twice_the_workers_make_batches_twice_as_fast(tmp_path):
    """10 ms a step with 2 workers: 20 ms a batch, and with 4 of them 5 ms a step, a tenth more for what they share."""
    side = judged(tmp_path, SLOW_WORKERS, unit_us=1000, tb_bottleneck=context(loader={"workers": 2}))
    told = what_if(side, Asked(workers=4))
    assert told.after.step_ns == pytest.approx(5e6 * 1.1, rel=0.03)


def test_how_many_there_are_has_to_be_known(tmp_path):
    with pytest.raises(Unpredictable, match="is not recorded"):
        to_workers(judged(tmp_path, SLOW_WORKERS, unit_us=1000).recording, 4)


def test_workers_that_keep_up_do_not_show_how_fast_they_are(tmp_path):
    with pytest.raises(Unpredictable, match="keep up already"):
        to_workers(judged(tmp_path, FAST_WORKERS).recording, 4)


def test_without_a_loader_there_is_nothing_to_give_workers_to(tmp_path):
    with pytest.raises(Unpredictable, match="Who makes the batches is not known"):
        to_workers(judged(tmp_path, repeated(9, op="##..", gpu="..##")).recording, 4)


def test_more_workers_than_cores_change_nothing(tmp_path):
    """Two workers keep both cores busy; four of them make no batch sooner, and none later."""
    side = judged(tmp_path, SLOW_WORKERS, unit_us=1000, tb_bottleneck=context(workers=2, cores=2))
    told = what_if(side, Asked(workers=4))
    assert told.after.speedup == pytest.approx(1, abs=0.02)
    assert any("only 2 of them work at once" in line for line in told.assumptions)
