"""The routes that hold recordings against each other, or against what they could be: compare, series, what_if."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from google.protobuf.message import Message

from tb_bottleneck.knowledge.gpus import known_names
from tb_bottleneck.plugin.state.run_index import LogdirScan, RunIndex
from tb_bottleneck.plugin.workers.failures import WorkerFailure
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.schema.comparison_pb2 import ComparisonAnswer, DeviceList, SeriesAnswer, WhatIfAnswer
from tb_bottleneck.sources.logdir import Recording

MOST_RUNS = 12  # of a series: each is held in memory until the answer is there
MOST_HEARD = 4  # event files of one run that are listened to
OWN_FOLDER = "tb_bottleneck"  # of a monitor, in the folder of the run that it watches
LARGEST_NUMBER = 1 << 30
LONGEST_TEXT = 200  # characters of a device's name, say
TEXTS, NUMBERS = ("device", "precision", "link"), ("workers", "batch")
GONE = "No recording has one of these ids now; ask `runs` for those that are there."
Question = dict[str, str | float | None]


class Arguments(Protocol):
    """What a request asks, as werkzeug parses it."""

    def get(self, name: str, default: str) -> str: ...
    def getlist(self, name: str) -> list[str]: ...


@dataclass(frozen=True)
class Refused:
    """A question that has no answer: the HTTP status, and a sentence."""

    code: int
    text: str


Said = bytes | Message | Refused


class Comparisons:
    """The handlers; the process for questions does the work."""

    def __init__(self, runs: RunIndex, questions: QuestionQueue) -> None:
        self._runs = runs
        self._questions = questions

    def compare(self, asked: Arguments) -> Said:
        """One recording against another."""
        ids = [asked.get(side, "") for side in ("a", "b")]
        if not all(ids):
            return Refused(400, "Which recordings? Ask compare?a=ID&b=ID with ids that `runs` lists.")
        return self._answer("compare", ids, ComparisonAnswer(a=ids[0], b=ids[1]), {})

    def series(self, asked: Arguments) -> Said:
        """Several recordings in a row."""
        ids = asked.getlist("id")
        if not 2 <= len(ids) <= MOST_RUNS or not all(ids):
            return Refused(400, f"Ask series?id=ID&id=ID... with 2 to {MOST_RUNS} ids that `runs` lists.")
        return self._answer("series", ids, SeriesAnswer(ids=ids), {})

    def what_if(self, asked: Arguments) -> Said:
        """One recording under other conditions."""
        ids = [asked.get("id", "")]
        if not all(ids):
            return Refused(400, "Which recording? Ask what_if?id=ID&device=NAME with an id that `runs` lists.")
        change: Question = {name: asked.get(name, "") for name in TEXTS if asked.get(name, "")}
        if any(len(str(text)) > LONGEST_TEXT for text in change.values()):
            return Refused(
                400, f"A name has at most {LONGEST_TEXT} characters; ask `devices` for those that are known."
            )
        for name in NUMBERS:
            text = asked.get(name, "")
            if text and not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= LARGEST_NUMBER):
                return Refused(400, f"`{name}` is a whole number of at most {LARGEST_NUMBER}.")
            change |= {name: int(text)} if text else {}
        if not change:
            return Refused(400, f"What if what? Say one of {', '.join((*TEXTS, *NUMBERS))}.")
        return self._answer("what_if", ids, WhatIfAnswer(id=ids[0]), change)

    def devices(self, asked: Arguments) -> Said:
        """What `what_if` can be asked about."""
        return DeviceList(names=known_names())

    def _answer(
        self,
        ask: str,
        ids: Sequence[str],
        answer: ComparisonAnswer | SeriesAnswer | WhatIfAnswer,
        more: Mapping[str, str | float | None],
    ) -> Said:
        """The reply of the process for questions; until it is there, `answer` with how far it is."""
        look = self._runs.latest()
        if look is None:
            answer.state = "waiting"
            return answer
        found = [look.by_id[asked] for asked in ids if asked in look.by_id]
        if len(found) < len(ids):
            return Refused(404, GONE)
        reply = self._questions.ask(question_of(ask, ids, found, look) | dict(more))
        if isinstance(reply, bytes):
            return reply
        if isinstance(reply, WorkerFailure):
            answer.state, answer.problem = "failed", f"These recordings could not be compared: {reply.detail}."
        else:
            answer.state, answer.progress = "waiting" if reply.waiting else "analysing", reply.progress
        return answer


def question_of(ask: str, ids: Sequence[str], recordings: Sequence[Recording], look: LogdirScan) -> Question:
    """The question for plugin/workers/dispatch.py; a file that was replaced makes it another one."""
    question: Question = {"ask": ask, "count": len(ids)}
    for number, (asked, recording) in enumerate(zip(ids, recordings, strict=True)):
        name = recording.source if recording.run in ("", ".") else f"{recording.run}/{recording.source}"
        question |= {
            f"id_{number}": asked,
            f"path_{number}": recording.path,
            f"name_{number}": name,
            f"mtime_ns_{number}": recording.mtime_ns,
            f"size_{number}": recording.size,
        }
        for position, heard in enumerate(heard_around(recording, look.listing.recordings)):
            question |= {f"heard_{number}_{position}": heard.path, f"heard_at_{number}_{position}": heard.mtime_ns}
    return question


def heard_around(recording: Recording, every: Sequence[Recording]) -> list[Recording]:
    """The last event files that a monitor wrote beside a trace or in its own folder there, the oldest first."""
    folder = os.path.dirname(recording.path)
    found = [one for one in every if one.is_telemetry and os.path.dirname(one.path).startswith(folder)]
    own = (folder, os.path.join(folder, OWN_FOLDER))
    found = [one for one in found if os.path.dirname(one.path) in own or one.path.startswith(own[1] + os.sep)]
    return sorted(found, key=lambda one: one.mtime_ns)[-MOST_HEARD:]
