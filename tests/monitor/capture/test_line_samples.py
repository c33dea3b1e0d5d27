"""The lines that run are sampled, bounded, and never disturb the training."""

import sys
import threading
import time

import pytest

from tb_bottleneck.monitor.capture import line_samples as module
from tb_bottleneck.monitor.capture.line_samples import LineSampler


def _loop(seconds: float) -> int:
    until, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        for step in range(2_000):
            number = (number * 31 + step) % 1_000_003
    return number


HOT = _loop.__code__.co_firstlineno + 4


def test_a_loop_without_calls_has_its_line():
    sampler = LineSampler()
    sampler.start()
    _loop(0.4)
    samples = sampler.stop()
    lines = {line: count for _, first, name, line, count in samples if name == "_loop" and first == HOT - 4}
    total = sum(lines.values())
    assert total >= 8
    assert lines.get(HOT, 0) + lines.get(HOT - 1, 0) >= 0.9 * total
    file = next(file for file, _, name, _, _ in samples if name == "_loop")
    assert file.endswith("test_line_samples.py")
    assert not any(thread.name == "tb_bottleneck lines" for thread in threading.enumerate())


def test_the_innermost_line_of_the_program_counts():
    sampler = LineSampler()

    def inside() -> None:
        sampler.look(sys._getframe())
        [sampler.look(sys._getframe(1)) for _ in range(1)]

    inside()
    assert sum(sampler._counts.values()) == 2
    assert {code.co_name for code, _ in sampler._counts} >= {"inside"}


def test_nothing_is_sampled_without_a_start_or_a_thread():
    assert LineSampler().stop() == []
    sampler = LineSampler()
    sampler.look(None)
    assert not sampler._counts


def test_an_error_ends_the_sampling():
    def broken():
        raise RuntimeError("no frames")

    sampler = LineSampler(broken)
    sampler.start()
    time.sleep(0.02)
    assert sampler.stop() == []


def test_the_number_of_samples_and_lines_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_SAMPLES", 3)
    monkeypatch.setattr(module, "MAX_LINES", 1)
    sampler = LineSampler()
    sampler.start()
    _loop(0.1)
    samples = sampler.stop()
    assert len(samples) <= 1
    assert sum(count for *_, count in samples) <= 3


def test_the_switch_interval_is_restored_unless_the_program_changes_it():
    usual = sys.getswitchinterval()
    sampler = LineSampler()
    sampler.start()
    assert sys.getswitchinterval() <= module.SWITCH_S
    sampler.stop()
    assert sys.getswitchinterval() == usual
    sampler.start()
    sys.setswitchinterval(0.02)
    sampler.stop()
    assert sys.getswitchinterval() == pytest.approx(0.02)
    sys.setswitchinterval(usual)


@pytest.mark.parametrize("times", [2, 3])
def test_it_can_be_used_again(times):
    sampler = LineSampler()
    for _ in range(times):
        sampler.start()
        _loop(0.05)
        assert sampler.stop() != []
