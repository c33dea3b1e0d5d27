"""Which function answers which question, in the process for questions."""

from collections.abc import Callable, Mapping
from typing import Any

from tb_bottleneck.comparison.comparing import compare
from tb_bottleneck.evidence import answering
from tb_bottleneck.report.jsonform import as_json
from tb_bottleneck.schema.comparison_pb2 import ComparisonAnswer

Progress = Callable[[int, int], None]
COMPARE = "compare"


def answer(question: Mapping[str, Any], progress: Progress | None = None) -> bytes:
    """The answer to {"ask": "compare", "a", "b", "a_path", "b_path", "a_name", "b_name"}: JSON of a ComparisonAnswer.

    Other questions are those of evidence/answering.py.
    """
    if question["ask"] != COMPARE:
        return answering.answer(question, progress)
    names = (question["a_name"], question["b_name"])
    told = compare(question["a_path"], question["b_path"], names, progress)
    done = ComparisonAnswer(a=question["a"], b=question["b"], state="done", progress=1.0, comparison=told)
    return as_json(done).encode()
