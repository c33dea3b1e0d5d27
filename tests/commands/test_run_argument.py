"""Tests of the argument RUN: a file, or a directory that holds one run."""

import os

import pytest
from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import RunFiles, recordings_of
from tb_bottleneck.sources.logdir import Listing, RecordingFile

DRAWING = repeated(9, op="##..", gpu="..##")


def test_a_file_is_itself(tmp_path):
    path = recorded(tmp_path, DRAWING)
    assert recordings_of(path) == RunFiles((path,))


def test_a_directory_is_its_recordings_the_oldest_first(tmp_path):
    first, second = recorded(tmp_path, DRAWING), recorded(tmp_path, DRAWING)
    os.utime(second, (1, 1))
    assert recordings_of(str(tmp_path)) == RunFiles((second, first))


def test_a_directory_of_several_runs_names_them(tmp_path):
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        recorded(tmp_path / run, DRAWING)
    with pytest.raises(NotFound, match=r"contains 2 runs \(one, two\); name one of them"):
        recordings_of(str(tmp_path))


def test_a_directory_without_a_trace_says_what_was_looked_for(tmp_path):
    with pytest.raises(NotFound, match=r"\*\.pt\.trace\.json"):
        recordings_of(str(tmp_path))


def test_telemetry_alone_is_reported_as_no_trace(tmp_path, monkeypatch):
    events = tmp_path / "events.out.tfevents.1.2.0"
    events.write_bytes(b"")
    listing = Listing((RecordingFile(str(events), ".", events.name, 0, 0),), ())
    monkeypatch.setattr("tb_bottleneck.sources.logdir.scan", lambda path: listing)
    with pytest.raises(NotFound, match="its telemetry alone cannot be replayed"):
        recordings_of(str(tmp_path))


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(NotFound, match="nowhere"):
        recordings_of(str(tmp_path / "nowhere"))
