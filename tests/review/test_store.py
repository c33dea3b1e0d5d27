"""Tests of the files of notes: nothing is lost when several write, and no file can do harm."""

import json
import os
import subprocess
import sys
import time

import pytest

from tb_bottleneck.review import store
from tb_bottleneck.review.notes import MAX_LINE_BYTES, Action, Note, clean, line_of, parse
from tb_bottleneck.review.store import NoteWriter, read_all, read_notes
from tb_bottleneck.sources.file_system import REVIEW_DIRECTORY
from tb_bottleneck.sources.logdir import Root

WRITE_1000 = """
import sys
from tb_bottleneck.review.notes import Action
from tb_bottleneck.review.store import NoteWriter
notes = NoteWriter(sys.argv[1], "Ana")
print("ready", flush=True)
sys.stdin.readline()
for number in range(1000):
    notes.write(Action.COMMENT, "run", text=f"{sys.argv[2]} {number}")
"""
NOTE = {"id": "a", "time_ns": 5, "writer": "Ana", "action": "comment", "subject": "run", "text": "Ben"}


def test_two_people_of_the_same_name_write_1000_notes_each_at_once_and_nothing_is_lost(tmp_path):
    command = [sys.executable, "-c", WRITE_1000, str(tmp_path)]
    both = [subprocess.Popen([*command, name], stdin=-1, stdout=-1) for name in ("one", "other")]
    assert [process.stdout.readline() for process in both] == [b"ready\n"] * 2
    for process in both:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in both:
        process.communicate()
        assert process.returncode == 0
    found = read_notes(str(tmp_path))
    texts = [note.text for note in found.notes]
    assert sorted(texts) == sorted(f"{name} {number}" for name in ("one", "other") for number in range(1000))
    assert [text for text in texts if text.startswith("one")] == [f"one {number}" for number in range(1000)]
    assert found.problems == ()
    assert len(list((tmp_path / REVIEW_DIRECTORY).iterdir())) == 2


def test_each_writing_process_has_a_file_of_its_own_and_only_adds_to_it(tmp_path):
    first, second = NoteWriter(str(tmp_path), "Ana"), NoteWriter(str(tmp_path), "Ana")
    assert not first.path.parent.exists(), "reading the review writes nothing"
    first.write(Action.COMMENT, "run", text="Ben")
    second.write(Action.COMMENT, "run", text="Cem")
    before = first.path.read_bytes()
    first.write(Action.COMMENT, "run", text="Dia")
    assert first.path != second.path
    assert first.path.read_bytes().startswith(before)


def test_a_note_is_later_than_those_that_its_writer_could_read(tmp_path, monkeypatch):
    ahead = NoteWriter(str(tmp_path), "Ana")
    now = time.time_ns()
    monkeypatch.setattr(store.time, "time_ns", lambda: now + 3600 * 10**9)
    ahead.write(Action.ACCEPT, "run", text="ahead")
    monkeypatch.setattr(store.time, "time_ns", lambda: now)
    NoteWriter(str(tmp_path), "Ben").write(Action.REOPEN, "run", text="answer")
    assert [note.text for note in read_notes(str(tmp_path)).notes] == ["ahead", "answer"]


def test_what_is_no_note_is_left_out_and_said(tmp_path):
    directory = tmp_path / REVIEW_DIRECTORY
    directory.mkdir()
    bad = [
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"id": "\\ud800"}',
        b"\xff",
        json.dumps(NOTE | {"time_ns": 1 << 63}).encode(),
        json.dumps(NOTE | {"time_ns": True}).encode(),
        json.dumps(NOTE | {"action": "delete"}).encode(),
        json.dumps(NOTE | {"subject": ["run"]}).encode(),
        b" " * MAX_LINE_BYTES + json.dumps(NOTE).encode(),
    ]
    (directory / "1.jsonl").write_bytes(b"\n".join([*bad, json.dumps(NOTE).encode(), b'{"id": "unfin']))
    os.mkfifo(directory / "2.jsonl")
    (directory / "3.jsonl").symlink_to("/etc/passwd")
    (directory / "4.jsonl").write_bytes(b"x" * (store.MAX_FILE_BYTES + 1))
    (directory / "other.txt").write_text("not ours")
    found = read_notes(str(tmp_path))
    assert found.notes == (Note("a", 5, "Ana", Action.COMMENT, "run", text="Ben"),)
    assert [problem.split()[1] for problem in found.problems] == ["3", str(len(bad))]


def test_reading_is_bounded(tmp_path, monkeypatch):
    directory = tmp_path / REVIEW_DIRECTORY
    directory.mkdir()
    (directory / "0.jsonl").write_bytes(b"\n" * 10_000)
    for number in range(1, 4):
        (directory / f"{number}.jsonl").write_bytes(line_of(parse(json.dumps(NOTE | {"id": str(number)}).encode())))
    monkeypatch.setattr(store, "MAX_FILES", 3)
    assert [note.id for note in read_notes(str(tmp_path)).notes] == ["1", "2", "3"], "the newest files are read"
    monkeypatch.setattr(store, "MAX_FILES", 9)
    assert "101 lines" in read_notes(str(tmp_path)).problems[0]
    monkeypatch.setattr(store, "MAX_TOTAL_BYTES", 150)
    assert [note.id for note in read_notes(str(tmp_path)).notes] == ["3"]


def test_texts_lose_control_characters_and_long_ones_are_refused(tmp_path):
    assert clean("a\x1b[31m\n\u202eb\ud800  c") == "a[31m b c"
    with pytest.raises(ValueError, match="maximum is 2000"):
        NoteWriter(str(tmp_path), "Ana").write(Action.COMMENT, "run", text="x" * 2001)


def test_a_logdir_without_write_permission_is_an_error_and_without_a_review_it_is_empty(tmp_path):
    assert read_notes(str(tmp_path)) == read_notes("s3://bucket/runs") == store.Notes()
    (tmp_path / REVIEW_DIRECTORY).write_text("a file")
    with pytest.raises(OSError, match="exists"):
        NoteWriter(str(tmp_path), "Ana").write(Action.COMMENT, "run", text="Ben")
    assert read_notes(str(tmp_path)) == store.Notes()


def test_whoever_may_write_to_the_logdir_may_write_to_the_review(tmp_path):
    tmp_path.chmod(0o2775)
    NoteWriter(str(tmp_path), "Ana").write(Action.COMMENT, "run", text="Ben")
    assert (tmp_path / REVIEW_DIRECTORY).stat().st_mode & 0o7777 == 0o2775


def test_names_in_several_directories_begin_with_the_name_of_theirs(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        notes = NoteWriter(str(tmp_path / name), "Ana")
        notes.write(Action.FIXED, "x", fixed_in=".")
        notes.write(Action.COMMENT, ".", text=".")
    found = read_all((Root(str(tmp_path / "a"), "A"), Root(str(tmp_path / "b"))))
    assert {(note.subject, note.fixed_in, note.text) for note in found.notes} == {
        ("A/x", "A", ""),
        ("A", "", "."),
        ("x", ".", ""),
        (".", "", "."),
    }


def test_notes_of_actions_that_no_longer_exist_are_comments():
    found = [parse(json.dumps(NOTE | {"action": action, "text": text}).encode()) for action, text in RETIRED]
    assert [(note.action, note.text) for note in found] == [
        (Action.COMMENT, "owner: Ben"),
        (Action.COMMENT, "baseline of ."),
    ]


RETIRED = (("own", "Ben"), ("baseline", "."))
