"""How often gradients are exchanged per optimizer step, from drawn steps of four portions."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.collectives import exchanged_portions
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

STEPS, PORTIONS = 4, 4
DRAWING = "step " + "".join(letter * 40 for letter in "abcd") + "\nop " + "..###....." * STEPS * PORTIONS
ROW = {"ph": "X", "cat": "user_annotation", "pid": 100, "tid": 100}


def accumulated(tmp_path, exchanging, *, updates=1, wrapped=True, name="gloo:all_reduce"):
    """Four steps of four portions of 10 ms; `exchanging` are the portions with an exchange of 4 ms."""
    whole = drawn(DRAWING, 1000) | {"distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}}
    rows = whole["traceEvents"]
    for step in range(STEPS):
        begins = [step * 40_000 + portion * 10_000 for portion in range(PORTIONS)]
        if wrapped:
            rows += [ROW | {"name": "DistributedDataParallel.forward", "ts": begin + 5, "dur": 900} for begin in begins]
        rows += [ROW | {"name": name, "tid": 777, "ts": begins[at] + 5_500, "dur": 4_000} for at in exchanging]
        last = begins[-1] + 9_600
        rows += [ROW | {"name": "Optimizer.step#SGD.step", "ts": last + 50 * at, "dur": 40} for at in range(updates)]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(whole | {"deviceProperties": []}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace)), path


@pytest.mark.parametrize(("exchanging", "portions"), [((0, 1, 2, 3), 4), ((1, 3), 2), ((3,), 1)])
def test_portions_with_an_exchange_are_counted_per_optimizer_step(tmp_path, exchanging, portions):
    recording, _ = accumulated(tmp_path, exchanging)
    assert exchanged_portions(recording).value == portions


def test_several_optimizers_of_a_step_have_an_exchange_each(tmp_path):
    recording, _ = accumulated(tmp_path, (0, 3), updates=2)
    assert exchanged_portions(recording).value == 1


def test_only_reductions_of_a_data_parallel_model_count(tmp_path):
    assert isinstance(exchanged_portions(accumulated(tmp_path, (0, 1), wrapped=False)[0]), Missing)
    assert isinstance(exchanged_portions(accumulated(tmp_path, (0, 1), updates=0)[0]), Missing)
    assert isinstance(exchanged_portions(accumulated(tmp_path, (0, 1), name="gloo:broadcast")[0]), Missing)


def test_one_exchange_in_the_place_of_all_is_advised_first(tmp_path):
    _, path = accumulated(tmp_path, (0, 1, 2, 3))
    leading = diagnose(str(path)).findings[0]
    assert leading.cause == "synced_portions"
    assert "no_sync" in leading.fix.code
    assert leading.cost_share == pytest.approx(0.4 * 3 / 4, abs=0.02)
