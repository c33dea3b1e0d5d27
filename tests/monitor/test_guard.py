"""Only a failing signal is disabled, with one warning and one note."""

import logging
import threading

import pytest

from tb_bottleneck.monitor.guard import MAX_NOTES, Guard


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
