"""Host activities: a launch that loads its kernel's code counts as initialization, not as launch overhead."""

import json

import pytest
from helpers.draw import drawn, loaded

from tb_bottleneck.attribution.host_activity import REGIME_OF_ACTIVITY, Activity, activity_named
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.knowledge.catalogue import load as load_facts
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

# Twenty kernels of 1 ms, each launched just before it begins.
STEADY = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    op      ########################################
    gpu     .a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t
"""


def account(tmp_path, slow, length_us):
    """Returns the account if the launch of one kernel takes longer and everything after it is delayed."""
    whole = drawn(STEADY, 1000)
    calls = sorted((e for e in whole["traceEvents"] if e["cat"] == "cuda_runtime"), key=lambda e: e["ts"])
    late = calls[slow]["ts"]
    for event in whole["traceEvents"]:
        if event["ts"] > late:
            event["ts"] += length_us
        elif event["ts"] + event["dur"] > late and event["cat"] != "kernel":
            event["dur"] += length_us
    path = tmp_path / "slow.pt.trace.json"
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    return Recording(trace, find_steps(trace)).account


def test_every_activity_has_an_owner_and_every_name_in_the_knowledge_is_an_activity():
    assert set(REGIME_OF_ACTIVITY) == set(Activity)
    for entry in load_facts("host_activities.toml")["activity"]:
        assert activity_named(entry["does"]) in Activity


def test_the_first_launch_of_a_kernel_that_takes_milliseconds_loads_its_code(tmp_path):
    loading = account(tmp_path, 0, 9_000)
    assert loading.ns["interruption"] == pytest.approx(9e6, rel=0.1)


def test_a_start_up_is_reported_but_does_not_bound_the_run(tmp_path):
    """It takes a fifth of the recording and happens once: the device's work and the launches are judged."""
    account(tmp_path, 0, 9_000)
    report = diagnose(str(tmp_path / "slow.pt.trace.json"))
    assert "starting" in [reason.code for reason in report.health.reasons]
    start = next(finding for finding in report.findings if finding.cause == "start_up")
    assert start.speedup.basis == "none"
    assert "start_up" not in [step.cause for step in report.plan]
    assert report.verdict.regime == "launch"


def test_a_later_long_launch_does_not(tmp_path):
    assert account(tmp_path, 8, 9_000).ns["interruption"] == 0


def test_a_short_first_launch_does_not_either(tmp_path):
    assert account(tmp_path, 0, 600).ns["interruption"] == 0


@pytest.mark.parametrize(
    ("name", "pause_us", "converted_us"),
    [
        ("<built-in method tensor of type object at 0x7f2c4d0c1a40>", 400, 400),
        ("<built-in function array>", 400, 400),
        ("<built-in method tensor of type object at 0x7f2c4d0c1a40>", 90, 0),
        ("train.py(10): forward", 400, 0),
    ],
)
def test_converting_a_list_is_no_dispatching_even_between_two_operators(name, pause_us, converted_us):
    """An operator of 10 us in the conversion, such as aten::to, keeps its time."""
    whole = drawn("step aaaaaaaaaa\nop #...=.#...", 1, deviceProperties=[])
    step, first, inside, last = sorted(whole["traceEvents"], key=lambda event: event["ts"])
    step |= {"dur": pause_us + 40}
    first |= {"ts": step["ts"] + 10, "dur": 10}
    last |= {"ts": first["ts"] + 10 + pause_us, "dur": 10}
    inside |= {"ts": first["ts"] + 30, "dur": 10}
    frame = {**first, "cat": "python_function", "name": name, "ts": first["ts"] + 10, "dur": pause_us}
    trace = loaded(whole | {"traceEvents": [*whole["traceEvents"], frame]})
    converted = Recording(trace, find_steps(trace)).host.activities(0)[Activity.OTHER]
    assert int((converted.ends - converted.starts).sum()) == max(converted_us - 10, 0) * 1000
