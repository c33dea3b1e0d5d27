"""The functions that a loop calls are parts of its step, each with its own account."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.user_code.step_parts import step_parts
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

FRAMES = (
    "train.py(1): <module>",
    "train.py(7): rollout",
    "torch/nn/modules/module.py(1): _call_impl",
    "net.py(3): forward",
)
# Per step of 10 ms: rollout for 4 ms, in which the module's forward runs; reward for 3 ms; the loop itself for 3 ms.
DRAWING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      #...##....#...##....#...##....
    gpu     .abc......abcd......abcd......
"""


def frame(name, begin, length):
    return {"ph": "X", "cat": "python_function", "name": name, "pid": 100, "tid": 100, "ts": begin, "dur": length}


def written(tmp_path, frames):
    whole = drawn(DRAWING, 1000, with_stack=1)
    path = tmp_path / "loop.pt.trace.json"
    path.write_text(json.dumps(whole | {"traceEvents": [*whole["traceEvents"], *frames]}))
    return str(path)


def parts_of(path):
    trace = load(path)
    return step_parts(Recording(trace, find_steps(trace)))


LOOP = [frame("train.py(1): <module>", -1000, 40_000)]
CALLS = [
    call
    for begin in (0, 10_000, 20_000)
    for call in (
        frame("train.py(7): rollout", begin, 4000),
        frame("torch/nn/modules/module.py(1): _call_impl", begin + 100, 3000),
        frame("net.py(3): forward", begin + 200, 2000),
        frame("train.py(20): reward", begin + 6000, 3000),
    )
]


def test_the_outermost_functions_of_the_loop_are_its_parts(tmp_path):
    rollout, reward, rest = parts_of(written(tmp_path, LOOP + CALLS))
    assert (rollout.place.function, rollout.place.line) == ("rollout", 7)
    assert rollout.calls == 2, "the first step is not judged on a device"
    assert [round(part.share, 2) for part in (rollout, reward, rest)] == [0.4, 0.3, 0.3]
    assert reward.place.function == "reward"
    assert dict(reward.regimes).get(Regime.COMPUTE, 0) < 0.1 < dict(rollout.regimes)[Regime.COMPUTE]
    assert rest.place.function == ""
    assert sum(share for _, share in rollout.regimes) == pytest.approx(1)


@pytest.mark.parametrize(
    "frames",
    [[], LOOP, [*LOOP, *(call for call in CALLS if "reward" not in call["name"])]],
    ids=["no frames", "nothing is called", "one function"],
)
def test_a_loop_without_two_functions_has_no_parts(tmp_path, frames):
    assert parts_of(written(tmp_path, frames)) == ()


def test_the_report_lists_them(tmp_path):
    report = diagnose(written(tmp_path, LOOP + CALLS))
    assert [part.name for part in report.step_parts] == ["rollout", "reward", ""]
    assert report.step_parts[0].place.file == "train.py"
    assert not report.step_parts[2].HasField("place")
