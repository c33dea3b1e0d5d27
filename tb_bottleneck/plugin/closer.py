"""What the routes for a closer look read from a request, and what they say while there is no answer."""

import math
from collections.abc import Sequence

from tb_bottleneck.plugin.failures import Failure
from tb_bottleneck.plugin.questions import Pending
from tb_bottleneck.schema.comparison_pb2 import ComparisonAnswer
from tb_bottleneck.schema.evidence_pb2 import TablesAnswer
from tb_bottleneck.sources.logdir import Recording

LARGEST = 2.0**62  # ns: beyond any recording's clock, and still an integer of 64 bits


def finite(text: str) -> float | None:
    """The number, None where nothing was said. Raises ValueError for what is no number or no time."""
    if not text:
        return None
    value = float(text)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(text)
    return value


def unanswered(asked: str, reply: Failure | Pending) -> TablesAnswer:
    """How far the answer is, or why there is none; a TimelineAnswer has the same fields."""
    if isinstance(reply, Failure):
        return TablesAnswer(
            id=asked, state="failed", problem=f"This recording could not be looked into: {reply.detail}."
        )
    return TablesAnswer(id=asked, state="waiting" if reply.waiting else "analysing", progress=reply.progress)


def comparison_question(ids: Sequence[str], sides: tuple[Recording, Recording]) -> dict[str, str | float | None]:
    """The question for plugin/answering.py; a file that was replaced makes it another one."""
    question: dict[str, str | float | None] = {"ask": "compare"}
    for side, asked, recording in zip("ab", ids, sides, strict=True):
        name = recording.source if recording.run in ("", ".") else f"{recording.run}/{recording.source}"
        question |= {
            side: asked,
            f"{side}_path": recording.path,
            f"{side}_name": name,
            f"{side}_mtime_ns": recording.mtime_ns,
            f"{side}_size": recording.size,
        }
    return question


def uncompared(ids: Sequence[str], reply: Failure | Pending) -> ComparisonAnswer:
    """How far a comparison is, or why there is none."""
    answer = ComparisonAnswer(a=ids[0], b=ids[1])
    if isinstance(reply, Failure):
        answer.state, answer.problem = "failed", f"These recordings could not be compared: {reply.detail}."
    else:
        answer.state, answer.progress = "waiting" if reply.waiting else "analysing", reply.progress
    return answer
