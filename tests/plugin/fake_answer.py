"""Answers to questions that do what the question's id says: the tests of the plugin run it in a real process."""

import os
from collections.abc import Callable
from pathlib import Path

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.drilldown.inspected_trace import TraceCache
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, TimelineQuestion


def answer(question: RecordingQuestion, traces: TraceCache, progress: Callable[[int, int], None]) -> bytes:
    """Returns the question's id and the number of this process, unless the id asks for a failure."""
    assert isinstance(question, TimelineQuestion)
    assert isinstance(traces, TraceCache)
    progress(1, 4)
    if question.trace.id == "raise":
        raise RuntimeError("a defect")
    if question.trace.id == "refuse":
        raise NotFound("no such device")
    if question.trace.id == "exit":
        os._exit(3)
    if question.trace.id == "gate":  # a named pipe: reading it ends when the test has opened and closed it
        Path(question.trace.path).read_bytes()
    return f"{question.trace.id} {os.getpid()}".encode()
