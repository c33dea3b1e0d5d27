"""Which function answers which question, in the process for questions."""

from collections.abc import Callable, Mapping
from itertools import count, takewhile
from typing import Any

from google.protobuf.message import Message

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, UnjudgedRun
from tb_bottleneck.comparison.runs.open_run import open_recordings
from tb_bottleneck.comparison.series.run_series import series_of
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.drilldown import answers
from tb_bottleneck.errors import NotFound
from tb_bottleneck.report.rendering.json_form import as_json
from tb_bottleneck.schema.comparison_pb2 import ComparisonAnswer, SeriesAnswer, WhatIfAnswer

Progress = Callable[[int, int], None]


def answer(question: Mapping[str, Any], progress: Progress | None = None) -> bytes:
    """The answer to a question of plugin/http/comparison_routes.py as JSON, or to one of drilldown/answers.py."""
    told = _ANSWERS.get(question["ask"])
    return answers.answer(question, progress) if told is None else as_json(told(question, progress)).encode()


def _compared(question: Mapping[str, Any], progress: Progress | None) -> Message:
    a, b = _sides(question, progress)
    told = compare_runs(a, b)
    return ComparisonAnswer(a=question["id_0"], b=question["id_1"], state="done", progress=1.0, comparison=told)


def _in_a_row(question: Mapping[str, Any], progress: Progress | None) -> Message:
    ids = [question[f"id_{number}"] for number in range(question["count"])]
    return SeriesAnswer(ids=ids, state="done", progress=1.0, series=series_of(_sides(question, progress)))


def _what_if(question: Mapping[str, Any], progress: Progress | None) -> Message:
    asked = WhatIfOptions(*(question.get(name) for name in ("device", "workers", "batch", "precision", "link")))
    try:
        told = what_if(_sides(question, progress)[0], asked)
    except NotFound as error:
        return WhatIfAnswer(id=question["id_0"], state="failed", problem=_sentence(str(error)))
    return WhatIfAnswer(id=question["id_0"], state="done", progress=1.0, what_if=told)


def _sentence(words: str) -> str:
    """What an error says, with a capital letter and an end; a question has one already."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith('?') else '.'}"


def _sides(question: Mapping[str, Any], progress: Progress | None) -> list[ComparedRun | UnjudgedRun]:
    return [_side(question, number, progress) for number in range(question["count"])]


def _side(question: Mapping[str, Any], number: int, progress: Progress | None) -> ComparedRun | UnjudgedRun:
    """A recording with what its monitor logged around it."""
    keys = takewhile(question.__contains__, (f"heard_{number}_{position}" for position in count()))
    telemetry = [question[key] for key in keys]
    return open_recordings(question[f"name_{number}"], [question[f"path_{number}"]], telemetry, progress)


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any], Progress | None], Message]] = {
    "compare": _compared,
    "series": _in_a_row,
    "what_if": _what_if,
}
