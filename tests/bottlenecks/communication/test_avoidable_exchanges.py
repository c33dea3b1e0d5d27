"""How often gradients are exchanged per optimizer step, from drawn steps of four portions."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.communication.avoidable_exchanges import exchange_limit, exchanged_portions
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.jobs.summary.encoding import decode, encode
from tb_bottleneck.jobs.summary.extract import summary_of
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

STEPS, PORTIONS = 4, 4
DRAWING = "step " + "".join(letter * 40 for letter in "abcd") + "\nop " + "..###....." * STEPS * PORTIONS
ROW = {"ph": "X", "cat": "user_annotation", "pid": 100, "tid": 100}
SHAPE = {"Input type": ["float"]}


def accumulated(tmp_path, exchanging, *, updates=1, wrapped=True, name="gloo:all_reduce", more=(), forgets=()):
    """Four steps of four portions of 10 ms; `exchanging` are the portions with an exchange of 4 ms.

    `more` are portions with another, small exchange. After the portions in `forgets`, gradients are set to zero.
    """
    whole = drawn(DRAWING, 1000) | {"distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}}
    rows = whole["traceEvents"]
    for step in range(STEPS):
        begins = [step * 40_000 + portion * 10_000 for portion in range(PORTIONS)]
        if wrapped:
            rows += [ROW | {"name": "DistributedDataParallel.forward", "ts": begin + 5, "dur": 900} for begin in begins]
        exchange = ROW | {"name": name, "tid": 777, "dur": 4_000, "args": SHAPE | {"Input Dims": [[4810]]}}
        rows += [exchange | {"ts": begins[at] + 5_500} for at in exchanging]
        small = {"dur": 50, "args": SHAPE | {"Input Dims": [[64]]}}
        rows += [exchange | small | {"ts": begins[at] + 2_000} for at in more]
        zero = ROW | {"name": "Optimizer.zero_grad#SGD.zero_grad", "dur": 10}
        rows += [zero | {"ts": begins[at] + 9_800} for at in forgets]
        last = begins[-1] + 9_600
        rows += [ROW | {"name": "Optimizer.step#SGD.step", "ts": last + 50 * at, "dur": 40} for at in range(updates)]
    return read(tmp_path, whole)


def read(tmp_path, whole):
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(whole | {"deviceProperties": []}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace)), path


@pytest.mark.parametrize(("exchanging", "portions"), [((0, 1, 2, 3), 4), ((1, 3), 2), ((3,), 1)])
def test_portions_with_an_exchange_are_counted_per_optimizer_step(tmp_path, exchanging, portions):
    recording, _ = accumulated(tmp_path, exchanging)
    assert exchanged_portions(recording).value == portions


@pytest.mark.parametrize(
    ("others", "portions"),
    [
        ({"more": (0, 1, 2, 3)}, 4),  # batch norm over ranks, in each portion
        ({"forgets": (1, 3)}, 2),  # as in sharpness-aware steps, or after a step that a scaler left out
        ({"forgets": (0, 1, 2, 3)}, 1),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_only_gradients_that_a_later_exchange_has_too_are_repeated(tmp_path, others, portions):
    recording, _ = accumulated(tmp_path, (0, 1, 2, 3), **others)
    assert exchanged_portions(recording).value == portions


def test_exchanges_that_are_not_of_gradients_are_needed_in_each_portion(tmp_path):
    recording, _ = accumulated(tmp_path, (3,), more=(0, 1, 2, 3))
    assert exchanged_portions(recording).value == 1
    assert not summary_of(recording).communications.repeated.any()


def test_the_summary_of_a_rank_has_the_repeated_exchanges(tmp_path):
    summary = summary_of(accumulated(tmp_path, (0, 1, 3))[0])
    assert summary.communications.repeated.tolist() == [1, 1, 0] * STEPS
    assert decode(encode(summary)).communications.repeated.tolist() == [1, 1, 0] * STEPS


def test_several_optimizers_of_a_step_have_an_exchange_each(tmp_path):
    recording, _ = accumulated(tmp_path, (0, 3), updates=2)
    assert exchanged_portions(recording).value == 1


def test_only_reductions_of_a_data_parallel_model_count(tmp_path):
    assert isinstance(exchanged_portions(accumulated(tmp_path, (0, 1), wrapped=False)[0]), Missing)
    assert isinstance(exchanged_portions(accumulated(tmp_path, (0, 1), updates=0)[0]), Missing)
    assert isinstance(exchanged_portions(accumulated(tmp_path, (0, 1), name="gloo:broadcast")[0]), Missing)


def test_one_exchange_in_the_place_of_all_is_the_first_advice_about_exchanges(tmp_path):
    _, path = accumulated(tmp_path, (0, 1, 2, 3))
    leading = next(finding for finding in diagnose(str(path)).findings if finding.regime == "communication")
    assert leading.cause == "synced_portions"
    assert "no_sync" in leading.fix.code
    assert leading.cost_share == pytest.approx(0.4 * 3 / 4, abs=0.02)
    assert leading.speedup.basis == "estimate"
    assert leading.speedup.low < 1 / (1 - leading.cost_share) < leading.speedup.expected


@pytest.mark.parametrize(("shapes", "lost"), [([], 0.0), ([[8, 8]], 1 - 4.5 / 5.5)])
def test_better_exchanges_save_their_calls_and_what_operators_lose_to_them(tmp_path, shapes, lost):
    """Each step calls an exchange from 3 to 8 ms. With shapes, it is known that one operator takes 2 ms and then 3."""
    drawing = f"""
        step {"".join(letter * 10 for letter in "abc")}
        op   {"xxx.....yy" * 3}
    """
    whole = drawn(drawing, 1000) | {"distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}}
    rows = whole["traceEvents"]
    for event in rows:
        event |= {"args": SHAPE | {"Input Dims": shapes}} if shapes and event["cat"] == "cpu_op" else {}
    call = ROW | {"cat": "cpu_op", "name": "c10d::allreduce_", "dur": 500}
    gloo = ROW | {"name": "gloo:all_reduce", "tid": 777, "dur": 3_000}
    rows += [call | {"ts": step * 10_000 + 4_000} for step in range(3)]
    rows += [gloo | {"ts": step * 10_000 + 4_500} for step in range(3)]
    assert exchange_limit(read(tmp_path, whole)[0]).value == pytest.approx(0.5 + lost * 0.5)
