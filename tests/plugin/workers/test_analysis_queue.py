"""Recordings wait in order: those that were asked for, the last one first, then the newest."""

import pytest

from tb_bottleneck.plugin.workers.analysis_queue import WaitingRecordings
from tb_bottleneck.sources.logdir import RecordingFile


def recording(name, time):
    return RecordingFile(f"/logs/{name}", ".", name, 1, time)


OLD, MIDDLE, NEW = recording("old", 1), recording("middle", 2), recording("new", 3)


def waiting(*recordings):
    made = WaitingRecordings()
    for each in recordings:
        made.add(each)
    return made


def taken(those):
    return [those.take().source for _ in range(len(those))]


def test_the_newest_is_first():
    assert taken(waiting(MIDDLE, NEW, OLD)) == ["new", "middle", "old"]


def test_the_last_one_that_was_asked_for_is_before_all_others():
    those = waiting(OLD, MIDDLE, NEW)
    for each in (OLD, MIDDLE, OLD):
        those.ask_for(each)
    assert taken(those) == ["old", "middle", "new"]


def test_each_recording_is_taken_once():
    those = waiting(OLD, NEW)
    those.ask_for(OLD)
    those.add(OLD)
    assert taken(those) == ["old", "new"]
    with pytest.raises(IndexError):
        those.take()


def test_a_recording_can_wait_again():
    those = waiting(OLD, NEW)
    those.ask_for(OLD)
    assert those.take() == OLD
    those.add(OLD)  # its first entry by age was not dropped yet
    assert taken(those) == ["new", "old"]


def test_replaced_recordings_keep_their_order():
    those = waiting(OLD, MIDDLE)
    those.ask_for(OLD)
    those.ask_for(MIDDLE)
    those.replace({OLD, NEW})
    assert those.all() == {OLD, NEW}
    assert taken(those) == ["old", "new"]
