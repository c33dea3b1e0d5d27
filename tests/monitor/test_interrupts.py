"""Ctrl-C while the monitor works: the recording is kept, torch is restored, and the training still gets its signal."""

import gzip
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from monitor.training import Training
from monitor.written import read

from tb_bottleneck import Monitor
from tb_bottleneck.monitor.guard import interrupts_held, termination_held


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as in a terminal: processes that a shell starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_takes_effect_at_the_end() -> None:
    done = []

    def work() -> None:
        with interrupts_held():
            press()
            done.append("work")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["work"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_passes_at_once() -> None:
    done = []

    def work() -> None:
        with interrupts_held():
            press()
            press()
            done.append("work")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_already_ends_the_training_is_not_repeated() -> None:
    def work() -> None:
        try:
            raise KeyboardInterrupt("the first")
        finally:
            with interrupts_held():
                press()

    with pytest.raises(KeyboardInterrupt, match="the first"):
        work()


def test_other_threads_and_ignored_interrupts_are_left_alone() -> None:
    handlers = []

    def work() -> None:
        with interrupts_held():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work()
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [before, signal.SIG_IGN]


def test_a_termination_takes_effect_at_the_end_whatever_happens() -> None:
    done = []

    def work() -> None:
        with termination_held():
            signal.raise_signal(signal.SIGTERM)
            done.append("work")
            raise OSError("full")

    before = signal.signal(signal.SIGTERM, lambda *_: done.append("ended"))
    try:
        with pytest.raises(OSError, match="full"):
            work()
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done == ["work", "ended"]


@pytest.mark.parametrize("during", ["start", "step", "stop", "export_chrome_trace"])
def test_a_trace_survives_an_interrupt_while_it_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    """Pressed in the monitor's own call of the profiler; in `step`, in that of the last recorded step."""
    original = getattr(torch.profiler.profile, during)
    calls = []

    def interrupted(self: object, *arguments: object) -> object:
        calls.append(during)
        if during != "step" or len(calls) == 7:
            press()
        return original(self, *arguments)

    monkeypatch.setattr(torch.profiler.profile, during, interrupted)
    with pytest.raises(KeyboardInterrupt), Monitor(tmp_path, captures=1, every_s=0.1):
        Training().run(epochs=20)
    traces = list(tmp_path.rglob("*.pt.trace.json.gz"))
    if during == "start":  # no step was recorded
        assert traces == []
    else:
        (path,) = traces
        names = {event["name"] for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
        assert sum(name.startswith("ProfilerStep#") for name in names) == 6
    assert not list(tmp_path.rglob("*.tmp")) + list(tmp_path.rglob("*.unpacked"))
    assert read(tmp_path).numbers


def test_an_interrupt_in_a_recorded_step_keeps_the_steps_before(tmp_path: Path) -> None:
    training = Training()

    def run() -> None:
        with Monitor(tmp_path, captures=1, every_s=0.1) as monitor:
            while True:
                for number, batch in enumerate(training.loader):
                    training.step(batch)
                    session = monitor._session
                    if session is not None and session.capture.running and number == 4:
                        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    (path,) = tmp_path.rglob("*.pt.trace.json.gz")
    names = {event["name"] for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
    assert any(name.startswith("ProfilerStep#") for name in names)
