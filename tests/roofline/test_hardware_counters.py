"""Counters that are drawn into recordings: verdicts and figures follow them where they say something else."""

import gzip
import json

import numpy as np
import pytest
from helpers.draw import drawn
from helpers.reports import report_of

from demo.pairs import RECORDED
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.roofline.hardware_counters import Samples, Signal, samples_of, use_by_kernel
from tb_bottleneck.trace.trace import load

SIMULATED = sorted(path for path in RECORDED.glob("simulated/*/*/simulated*.gz"))
BUSY = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##........##........##........
    gpu     aaaaabbbbbaaaaabbbbbaaaaabbbbb
"""
US = 1000


def counter(name, value, us, device=0):
    return {"ph": "C", "name": name, "pid": f"GPU {device} Counters", "ts": us, "args": {"": value}}


def sampled(trace, name, value_at, every_us, device=0):
    """Returns the trace with samples of a counter over all of its time. `value_at` gets the share of the time."""
    ends = [event["ts"] + event.get("dur", 0) for event in trace["traceEvents"] if event.get("ph") == "X"]
    begin, end = min(event["ts"] for event in trace["traceEvents"] if event.get("ph") == "X"), max(ends)
    times = np.arange(begin, end + every_us, every_us)
    samples = [counter(name, value_at((us - begin) / (end - begin)), us, device) for us in times.tolist()]
    return {**trace, "traceEvents": [*trace["traceEvents"], *samples]}


def written(tmp_path, trace):
    path = tmp_path / "counters.pt.trace.json"
    path.write_text(json.dumps(trace))
    return str(path)


def recorded(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def test_samples_are_those_of_the_device_in_the_order_of_time(tmp_path):
    trace = drawn(BUSY, 1000)
    trace = sampled(sampled(trace, "SM Active (%)", lambda at: 100 * at, 5000), "SM Active (%)", lambda _: 1, 5000, 1)
    queue = {"ph": "C", "name": "queue", "pid": 7, "ts": 1, "args": {"length": 3}}
    loaded = load(written(tmp_path, {**trace, "traceEvents": [*trace["traceEvents"][::-1], queue]}))
    samples = samples_of(loaded, Signal.SM_ACTIVE)
    assert samples.values.tolist() == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    assert np.diff(samples.edges).tolist() == [5_000_000] * 7
    assert samples_of(loaded, Signal.CLOCK) is None
    assert loaded.counter_names == ("SM Active (%)",)


def test_a_mean_weighs_by_time_and_leaves_out_what_is_not_known():
    samples = Samples(np.array([0, 10, 20, 30]), np.array([0.2, np.nan, 0.8]))
    assert samples.mean(np.array([0, 5, 10, 5]), np.array([10, 25, 20, 15])).tolist() == pytest.approx(
        [0.2, 0.5, np.nan, 0.2], nan_ok=True
    )


def test_the_use_by_a_kernel_is_that_of_the_time_in_which_the_device_works(tmp_path):
    """Each kernel uses 0.4 of the bandwidth; a sample of 2 ms in which the device is idle for a half shows 0.2."""
    busy = dict(zip((2, 4, 6, 8, 10), (1, 0.5, 0.5, 0.5, 0), strict=True))
    trace = drawn(BUSY.replace("aaaaabbbbb", "aaa..bb..."), 1000)
    samples = [counter("DRAM BW (%)", 40 * busy[(ms - 1) % 10 + 1], ms * US) for ms in range(2, 31, 2)]
    loaded = load(written(tmp_path, {**trace, "traceEvents": [*trace["traceEvents"], *samples]}))
    use = use_by_kernel(loaded, Signal.BANDWIDTH)
    assert use.tolist() == pytest.approx([0.4] * len(use), abs=0.01)


def test_measured_bandwidth_decides_between_arithmetic_and_memory(tmp_path):
    trace = drawn(BUSY, 1000)
    before = diagnose(written(tmp_path, trace))
    after = diagnose(written(tmp_path, sampled(trace, "DRAM BW (%)", lambda _: 85, 500)))
    shares = [{row.regime: row.share for row in report.account} for report in (before, after)]
    assert shares[0]["compute"] > 0.3
    assert shares[1]["compute"] < 0.01 < 0.9 < shares[1]["memory"]


def test_low_activity_of_multiprocessors_is_too_little_work_per_kernel(tmp_path):
    trace = drawn(BUSY, 1000)
    report = diagnose(written(tmp_path, sampled(trace, "SM Active (%)", lambda _: 12, 500)))
    assert report.verdict.regime == "underfilled"
    (finding,) = (each for each in report.findings if each.cause == "small_batch")
    (row,) = (row for row in finding.evidence if "measured by the device's counters" in row.label)
    assert row.value == pytest.approx(0.12, abs=0.01)


def test_a_clock_that_falls_while_the_device_works_is_named(tmp_path):
    trace = sampled(drawn(BUSY, 1000), "SM Clock (MHz)", lambda at: 1980 if at < 0.34 else 1200, 500)
    trace = sampled(trace, "Temperature (C)", lambda at: 60 + 30 * at, 500)
    trace = sampled(trace, "Power (W)", lambda _: 400, 500)
    report = diagnose(written(tmp_path, trace))
    (finding,) = (each for each in report.findings if each.cause == "low_clock")
    assert finding.cost_share == pytest.approx(1 - 1200 / 1980, abs=0.01), "the first step is not judged"
    assert finding.speedup.basis == "bound"
    assert report.efficiency.joules_per_step == pytest.approx(400 * report.window.step_ns.mean / 1e9, rel=0.01)
    assert "nvidia-smi -q" in finding.fix.code


@pytest.mark.parametrize("path", SIMULATED, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_counters_that_agree_change_no_verdict(path, tmp_path):
    """Ten recordings, with a clock that is steady and an activity as high as that of their kernels."""
    trace = sampled(recorded(path), "SM Clock (MHz)", lambda _: 1980, 200)
    report = diagnose(written(tmp_path, trace))
    assert report.verdict == report_of(path).verdict
    assert [each.cause for each in report.findings] == [each.cause for each in report_of(path).findings]


@pytest.mark.parametrize("path", SIMULATED, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_planted_low_clock_is_found_where_the_device_works(path, tmp_path):
    before = {row.regime: row.share for row in report_of(path).account}
    trace = sampled(recorded(path), "SM Clock (MHz)", lambda at: 1980 if at < 0.1 else 990, 200)
    found = {finding.cause: finding for finding in diagnose(written(tmp_path, trace)).findings}
    busy = before["compute"] + before["memory"]
    assert ("low_clock" in found) == (busy > 0.5), "an idle device lowers its clock by itself"


@pytest.mark.parametrize("value", [None, "many", float("inf"), [1], {"a": 1}, True, 1e300, -5])
def test_odd_values_are_left_out_or_bounded(value, tmp_path):
    trace = drawn(BUSY, 1000)
    odd = [
        counter(name, value, us)
        for name in ("SM Active (%)", "SM Clock (MHz)", "Power (W)")
        for us in range(0, 30000, 500)
    ]
    report = diagnose(written(tmp_path, {**trace, "traceEvents": [*trace["traceEvents"], *odd]}))
    assert sum(row.share for row in report.account) == pytest.approx(1)
