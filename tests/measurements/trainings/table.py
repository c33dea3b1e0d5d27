"""The section of the accuracy page about the trainings with a planted problem."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tests.measurements.trainings.cases import CASES, Case
from tests.measurements.trainings.judge import gain

Json = dict[str, Any]
RESULTS = Path(__file__).parent / "results"
VERSIONS = {folder.name: folder for folder in sorted(RESULTS.iterdir()) if folder.is_dir()}
"""Folders of results by the version of Python that ran the trainings."""
MAIN = "3.11"
"""The version whose results are listed one by one."""
SPELLED = {True: "yes", False: "**no**", None: ""}
ABOUT = """\
`tests/measurements/trainings/` has {planted} trainings with one planted problem each, and {healthy} healthy ones in
which something harmless looks like a problem. The expected answers were committed before the recordings, and were not
changed afterwards. Each half was timed seven times without a profiler, in turn with the other one, and recorded once
by the monitor, on two cores of an {device}; `{analyser}` is the analyser that judged the recordings. The gain is that
of the CPU time per step; it is that of the wall time (marked w) only where the problem is waiting, workers, threads
or ranks. Patterns decide whether a finding names the problem, and those for loaders accept each cause of a loader.
They were run with Python {main} first, then again, as time allowed: {again}. The same monitor recorded them all, within
two days. These recordings showed errors that were corrected afterwards. The loader of `words/counted_one_by_one` was
taken for shorter than the training had logged. `cnn/validation` was 2.85 times as fast with Python 3.10 where the
report had said at most 2.77. Simulated gains were 7.5 % too low in the median, because operators get quicker if less
other work runs beside them; how much was taken from the operators of these recordings, not from the gains. The share
from which calls of operators are a problem was chosen with older recordings of these trainings. Most waits of
`ddp/reduce_by_hand` for its small all-reduces were taken for launch overhead, and with Python 3.13 the report said
"up to 2.6" where 5.2 was measured: the calls of collectives and the operators that they slow were not in this bound."""
COLUMNS = """\
With Python {main}. Regime: the verdict, and whether it is an expected one. Named: the first finding names the problem;
a healthy training has severity `none`. Line: a finding states exactly the planted line, or the line that begins its
function (f); `-` if it does not run in the recorded steps. A loop has several lines: the one that is named may be
another one of the same loop. Inside: the measured gain is inside the predicted interval, or not above a gain that is
bounded only ("up to"). After: the verdict on the fixed half."""
PYTHON = """\
These trainings time one piece of Python outside torch with `time.perf_counter`, in steps without a profiler. A report
states all Python outside torch, so a little more is right."""
# The basis of a gain, what was told, and what the measured gain has to be.
GAINS = (
    ("replay", "gain simulated", "the measured one inside the interval"),
    ("estimate", "gain estimated from measured changes, most of them of these trainings", "inside the interval"),
    ("bound", 'gain bounded ("up to")', "the measured one not above it"),
)
# Gains whose errors are summarised, and their bases.
ERRORS = (
    ("all predicted gains", ("replay", "estimate")),
    ("simulated gains", ("replay",)),
    ("estimated gains", ("estimate",)),
)
HEADINGS = ("training/problem", "regime", "named", "line", "measured gain", "predicted", "inside", "after")
NO_LINE, OUTSIDE, ABOVE = "no line", "gain outside the interval", "gain above its bound"


def load(name: str, version: str = MAIN) -> Json:
    """Returns the content of one file of results."""
    content: Json = json.loads((VERSIONS[version] / f"{name}.json").read_text(encoding="utf-8"))
    return content


def section() -> Iterator[str]:
    """Yields the section, line by line."""
    times, told = load("times"), load("answers")
    planted = [case for case in CASES.values() if case.words]
    yield f"## {len(CASES)} real trainings on the CPU"
    yield ""
    versions = sorted(VERSIONS, key=lambda version: version != MAIN)
    yield ABOUT.format(
        planted=len(planted),
        healthy=len(CASES) - len(planted),
        device=times["device"],
        analyser=told["analyser"],
        main=MAIN,
        again=", ".join(f"{len(load('times', version)['cases'])} with {version}" for version in versions[1:]),
    )
    yield ""
    yield f"| | {' | '.join(f'Python {version}' for version in versions)} |"
    yield f"|---|{'---:|' * len(versions)}"
    columns = [list(_summary(version)) for version in versions]
    for row in zip(*columns, strict=True):
        yield f"| {row[0][0]} | {' | '.join(value for _, value in row)} |"
    yield ""
    yield COLUMNS.format(main=MAIN)
    yield ""
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for name, case in CASES.items():
        yield _row(case, times["cases"].get(name), told["cases"].get(name))
    yield ""
    yield "### Python outside torch"
    yield ""
    yield PYTHON
    yield ""
    yield "| training/problem | Python | measured, ms per step | in the report |"
    yield "|---|---|---:|---:|"
    for version in versions:
        yield from _python_rows(version)
    yield ""
    yield "### Misses of the trainings, and why"
    yield ""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, case in CASES.items():
        for miss in misses(case, told["cases"].get(name), times["cases"].get(name)):
            reasons.setdefault((miss, reason_for(case, miss)), []).append(f"`{name}`")
    for (miss, reason), names in sorted(reasons.items(), key=lambda each: len(each[1])):
        yield f"- {', '.join(names)}: {miss}. {reason}"


def _python_rows(version: str) -> Iterator[str]:
    times, told = load("times", version)["cases"], load("answers", version)["cases"]
    for name in CASES:
        timed = [each.get("python_ms") for each in times.get(name, {}).get("slow", {}).get("timed", [])]
        if timed and None not in timed:
            yield f"| {name} | {version} | {median(timed):.2f} | {told.get(name, {}).get('python_ms', 0.0):.2f} |"


def misses(case: Case, answer: Json | None, times: Json | None) -> Iterator[str]:
    """Yields what is wrong in one answer."""
    if answer is None:
        yield "not recorded"
        return
    right = answer["regime_right"] or not case.words
    if not (right and answer["named"]):
        causes = ", ".join(f"`{cause}`" for cause in dict.fromkeys(answer["causes"])) or "nothing"
        expected = " or ".join(case.regimes.split()) if case.words else "healthy"
        yield f"{_verdict(answer)} with {causes}, expected {expected}"
    if answer["line"] in ("no", "function"):
        yield NO_LINE
    if inside(case, answer, times) is False:
        yield ABOVE if is_bound(answer) else OUTSIDE


def reason_for(case: Case, miss: str) -> str:
    """Returns the reason for a miss: that of the case, or the common one of the gains."""
    reasons = json.loads((RESULTS / "reasons.json").read_text(encoding="utf-8"))
    common = reasons["gain"] if miss == OUTSIDE else ""
    return str(reasons["cases"].get(f"{case.name}: {miss if miss in (NO_LINE, OUTSIDE, ABOVE) else 'verdict'}", common))


def inside(case: Case, answer: Json | None, times: Json | None) -> bool | None:
    """Tells whether the measured gain is inside the predicted interval; None without a prediction."""
    if not answer or not times or not answer["predicted"]:
        return None
    predicted = answer["predicted"]
    return bool((is_bound(answer) or predicted["low"] <= gain(case, times)) and gain(case, times) <= predicted["high"])


def is_bound(answer: Json) -> bool:
    """Tells whether an answer states an upper limit of a gain only."""
    return bool(answer["predicted"] and answer["predicted"]["basis"] == "bound")


def _summary(version: str) -> Iterator[tuple[str, str]]:
    """Yields what is counted and the counts, such as `54 of 59`, of one version of Python."""
    times, answers = load("times", version)["cases"], load("answers", version)["cases"]
    of_planted = partial(_count, [case for case in CASES.values() if case.words and case.name in answers], answers)
    of_healthy = partial(_count, [case for case in CASES.values() if not case.words and case.name in answers], answers)
    with_line = [case for case in CASES.values() if case.name in answers and answers[case.name]["line"] != "-"]
    yield "problem: regime right", of_planted(lambda case, answer: answer["regime_right"])
    yield "problem: named", of_planted(lambda case, answer: answer["named"])
    yield "healthy: no problem found", of_healthy(lambda case, answer: answer["named"])
    yield "line named", _count(with_line, answers, lambda case, answer: answer["line"] == "line")
    yield "line or function named", _count(with_line, answers, lambda case, answer: answer["line"] != "no")
    for basis, told, right in GAINS:
        predicted = [
            case
            for case in CASES.values()
            if (answer := answers.get(case.name)) and answer["predicted"] and answer["predicted"]["basis"] == basis
        ]
        yield told, of_planted(lambda case, answer, those=predicted: case in those)
        yield (
            f"{told}: {right}",
            _count(predicted, answers, lambda case, answer: inside(case, answer, times[case.name])),
        )
    yield "after the fix: problem no longer named", of_planted(lambda case, answer: not _is_left(answer))
    errors = [
        (answer["predicted"]["basis"], abs(answer["predicted"]["expected"] / gain(CASES[name], times[name]) - 1))
        for name, answer in answers.items()
        if CASES[name].words and answer["predicted"]
    ]
    for told, bases in ERRORS:
        chosen = [error for basis, error in errors if basis in bases]
        yield f"median error of {told}", f"{median(chosen):.1%}" if chosen else "-"


def _count(cases: list[Case], answers: Json, holds: Callable[[Case, Json], bool | None]) -> str:
    return f"{sum(bool(holds(case, answers[case.name])) for case in cases)} of {len(cases)}"


def _is_left(answer: Json) -> bool:
    """Tells whether the fixed half still has the problem as its first cause."""
    after = answer["after"]
    return after["severity"] != "none" and after["causes"][:1] == answer["causes"][:1]


def _row(case: Case, times: Json | None, answer: Json | None) -> str:
    measured = ""
    if case.words and times:
        measured = f"{gain(case, times):.2f}x{' w' if case.wall else ''}"
    name = f"{'' if case.words else '*healthy:* '}{case.name}"
    if answer is None:
        return f"| {name} | - | - | - | {measured} | | | |"
    after = answer["after"]
    cells = [
        name,
        _verdict(answer) + ("" if answer["regime_right"] else " **no**"),
        SPELLED[answer["named"]],
        {"line": "yes", "function": "f", "no": "**no**", "-": "-"}[answer["line"]],
        measured,
        _prediction(answer),
        SPELLED[inside(case, answer, times)],
        f"{after['regime']} ({after['severity']})" if after.get("regime") else "",
    ]
    return f"| {' | '.join(cells)} |"


def _verdict(answer: Json) -> str:
    if not answer["verdict"]["regime"]:
        return "none"
    verdict = answer["verdict"]
    return f"{verdict['regime']} {verdict['share'] or 0:.0%} ({verdict['severity']})"


def _prediction(answer: Json) -> str:
    if not answer["predicted"]:
        return ""
    predicted = answer["predicted"]
    return f"{predicted['expected']:.2f}x ({predicted['low']:.2f} to {predicted['high']:.2f})"
