"""Tests of the questions: their JSON form, and equality as the key of cached replies."""

import os
from dataclasses import replace
from typing import get_args

import pytest

from tb_bottleneck.plugin.workers.questions import (
    ComparedRecording,
    CompareQuestion,
    JobQuestion,
    RecordingQuestion,
    SavedJobQuestion,
    SeriesQuestion,
    SliceQuestion,
    TelemetryFile,
    TimelineQuestion,
    TraceFile,
    TreeQuestion,
    WhatIfQuestion,
    decode,
    encode,
)

TRACE = TraceFile("1f", os.fsdecode(b"/logs/\xff/a.json"), 1_700_000_000_123_456_789, 10)
PLAIN = ComparedRecording("a", TRACE)
WATCHED = ComparedRecording("b", TRACE, (TelemetryFile("/logs/events", 5), TelemetryFile("/logs/more", 6)))
QUESTIONS = [
    TimelineQuestion(TRACE, 0.5, 2.0**62, 100.0),
    TimelineQuestion(TRACE),
    TreeQuestion(TRACE, "line", merged=True, first_step=2, last_step=3, other=TRACE),
    TreeQuestion(TRACE, "module"),
    SliceQuestion(TRACE, 1.0),
    CompareQuestion(PLAIN, WATCHED),
    SeriesQuestion((PLAIN, WATCHED, PLAIN)),
    WhatIfQuestion(WATCHED, device="H200", workers=4),
    SavedJobQuestion(TRACE, "run", (TRACE, TRACE), "state", brief=True),
    JobQuestion(TRACE, "run", (TRACE, TRACE)),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
def test_a_question_survives_the_pipe(question: RecordingQuestion) -> None:
    assert decode(encode(question)) == question


def test_every_question_is_tested() -> None:
    assert {type(question) for question in QUESTIONS} == set(get_args(RecordingQuestion))


def test_equal_questions_are_one_key_and_different_ones_are_not() -> None:
    assert len({*QUESTIONS, *map(decode, map(encode, QUESTIONS))}) == len(QUESTIONS)
    replaced = replace(TRACE, mtime_ns=TRACE.mtime_ns + 1)
    assert TimelineQuestion(replaced) != TimelineQuestion(TRACE)


@pytest.mark.parametrize(
    "payload", [b"{", b"{}", b'{"type": "Another", "fields": {}}', b'{"type": "TimelineQuestion", "fields": {}}']
)
def test_other_payloads_are_refused(payload: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        decode(payload)
