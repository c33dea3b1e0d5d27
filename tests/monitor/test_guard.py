"""Tests that errors, interrupts and patches of the monitor leave the training as it was.

A Ctrl-C keeps the recording, restores torch and reaches the training; only a failing signal is disabled, with one
warning and one note.
"""

import gzip
import json
import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from monitor.training import Training
from monitor.written import read

from tb_bottleneck import Monitor
from tb_bottleneck.monitor.guard import MAX_NOTES, Guard, Patches, interrupts_held, termination_held


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_windows: None, during: str
) -> None:
    """Pressed in the monitor's own call of the profiler; in `step`, in that of the last recorded step."""
    original = getattr(torch.profiler.profile, during)
    calls = []

    def interrupted(self: object, *arguments: object) -> object:
        calls.append(during)
        if during != "step" or len(calls) == 10:
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
        assert sum(name.startswith("ProfilerStep#") for name in names) == 9
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


class Base:
    def call(self) -> str:
        return "original"


class Derived(Base):
    pass


def wrapped(original):  # type: ignore[no-untyped-def]
    return lambda *arguments: "ours " + original(*arguments)


def test_everything_is_put_back_as_it_was() -> None:
    patches, before = Patches(), dict(vars(Base))
    patches.replace(Base, "call", wrapped)
    patches.replace(Base, "call", wrapped)
    assert Base().call() == "ours ours original"
    patches.restore()
    patches.restore()
    assert dict(vars(Base)) == before


def test_an_inherited_attribute_is_inherited_again() -> None:
    patches = Patches()
    patches.replace(Derived, "call", wrapped)
    assert Derived().call() == "ours original"
    patches.restore()
    assert "call" not in vars(Derived)
    assert Derived().call() == "original"


def test_a_later_replacement_by_other_code_stays() -> None:
    patches, before = Patches(), Base.call
    try:
        patches.replace(Base, "call", wrapped)
        ours = Base.call
        Base.call = theirs = lambda self: "theirs " + ours(self)  # type: ignore[method-assign]
        patches.restore()
        assert Base.call is theirs
        assert Base().call() == "theirs ours original"
    finally:
        Base.call = before  # type: ignore[method-assign]


def fails() -> None:
    raise RuntimeError("driver shut down in /home/somebody")


def test_a_failing_signal_is_off_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    guard, calls = Guard(), []
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            guard.call("power", lambda: (calls.append(1), fails()))
    assert calls == [1]
    assert len(caplog.records) == 1
    assert not guard.is_on("power")
    assert guard.call("temperature", lambda: 40) == 40


def test_its_note_says_which_signal_but_not_what_the_error_said() -> None:
    guard = Guard()
    guard.call("power", fails)
    (note,) = guard.take_notes()
    assert (note.code, note.detail) == ("signal_off", "power: it failed with RuntimeError")
    assert guard.missing() == {"power": "it failed with RuntimeError"}
    assert guard.take_notes() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_training_passes(error: type[BaseException]) -> None:
    def interrupted() -> None:
        raise error

    with pytest.raises(error):
        Guard().call("power", interrupted)


def test_the_same_note_is_kept_once_and_notes_are_bounded() -> None:
    guard = Guard()
    for number in range(2 * MAX_NOTES):
        guard.note("dropped", "again")
        guard.note("dropped", str(number))
    assert len(guard.take_notes()) == MAX_NOTES


def test_two_threads_that_fail_at_once_make_one_note() -> None:
    guard, gate = Guard(), threading.Barrier(4)

    def work() -> None:
        gate.wait()
        guard.call("power", fails)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(guard.take_notes()) == 1


def test_a_full_disk_gives_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()
    for error in (OSError(28, "No space left on device"), ValueError("x"), OSError(28, "No space left on device")):
        guard.warn_of_disk(error)
    (record,) = caplog.records
    assert "No space left on device" in record.getMessage()
