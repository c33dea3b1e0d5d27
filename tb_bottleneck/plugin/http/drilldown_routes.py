"""What the routes for a closer look read from a request, and what they say while there is no answer."""

import math

from tb_bottleneck.plugin.workers.failures import WorkerFailure
from tb_bottleneck.plugin.workers.question_queue import Pending
from tb_bottleneck.schema.evidence_pb2 import TablesAnswer

LARGEST = 2.0**62  # ns: beyond any recording's clock, and still an integer of 64 bits


def finite(text: str) -> float | None:
    """The number, None where nothing was said. Raises ValueError for what is no number or no time."""
    if not text:
        return None
    value = float(text)
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(text)
    return value


def unanswered(asked: str, reply: WorkerFailure | Pending) -> TablesAnswer:
    """How far the answer is, or why there is none; a TimelineAnswer has the same fields."""
    if isinstance(reply, WorkerFailure):
        return TablesAnswer(
            id=asked, state="failed", problem=f"This recording could not be looked into: {reply.detail}."
        )
    return TablesAnswer(id=asked, state="waiting" if reply.waiting else "analysing", progress=reply.progress)
