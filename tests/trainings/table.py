"""The section of the accuracy page about the trainings with a planted problem."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tests.trainings.cases import CASES, Case
from tests.trainings.judge import gain

Json = dict[str, Any]
RESULTS = Path(__file__).parent / "results"
SPELLED = {True: "yes", False: "**no**"}
ABOUT = """\
`tests/trainings/` has {planted} trainings with one planted problem each, and {healthy} healthy ones in which something
harmless looks like a problem. The expected answers were committed before the recordings, and were not changed
afterwards. Each half was timed three times without a profiler, in turn with the other one, and recorded once by the
monitor, on two cores of an {device} and with Python 3.11. Other programs on the machine make wall times noisy.
Therefore the gain is that of the CPU time per step; it is that of the wall time (marked w) only where the problem is
waiting, workers, threads or ranks. Patterns decide whether a finding names the problem, and those for loaders accept
each cause of a loader. PyTorch records where each Python function and each comprehension begins, not the line that
runs, so most answers cannot name more than the function."""
COLUMNS = """\
Regime: the verdict, and whether it is an expected one. Named: the first finding names the problem; a healthy training
has severity `none`. Line: a finding states the planted line, or the line that begins its function (f); `-` if it does
not run in the recorded steps. Inside: the measured gain is inside the predicted interval, or not above a gain that is
bounded only ("up to"). After: the verdict on the fixed half."""
LINES = """\
The slow halves were recorded again by the monitor, which adds the lines of calls and samples those of loops. A finding
states exactly the planted line in {exact} of {count} (`first`: {before}). A loop has several lines; the one that is
named may be another one of the same loop."""
GAINS_AGAIN = """\
A gain is predicted for {predicted} of {count} problems (`first`: {before}). Without one: {without}. The gains were not
measured again: {inside} of {intervals} intervals contain the one that was timed with the first recordings, on another
machine, and {not_above} of {bounds} bounds are not exceeded by it."""
PYTHON = """\
These trainings time one piece of Python outside torch with `time.perf_counter`, in steps without a profiler. A report
states all Python outside torch, so a little more is right; `ranking` also converts nested lists to a tensor, which is
not timed and takes 1.7 ms alone."""
# The basis of a gain, what was told, and what the measured gain has to be.
GAINS = (
    ("replay", "gain simulated", "the measured one inside the interval"),
    ("estimate", "gain estimated from measured changes, most of them of these trainings", "inside the interval"),
    ("bound", 'gain bounded ("up to")', "the measured one not above it"),
)
HEADINGS = (
    "training/problem", "regime, first", "now", "named, first", "now", "line, first", "now", "measured gain",
    "predicted, first", "now", "inside, first", "now", "after",
)  # fmt: skip


def load(name: str) -> Json:
    """Returns the content of one file of results."""
    content: Json = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def section() -> Iterator[str]:
    """Yields the section, line by line."""
    times, first, now = load("times"), load("first_run"), load("now")
    planted = [case for case in CASES.values() if case.words]
    yield f"## {len(CASES)} real trainings on the CPU"
    yield ""
    yield ABOUT.format(planted=len(planted), healthy=len(CASES) - len(planted), device=times["device"])
    yield f"`first` is the analyser at {first['analyser']}, `now` the one at {now['analyser']}, on the same recordings."
    yield ""
    yield "| | of | first | now |"
    yield "|---|---:|---:|---:|"
    yield from _summary(planted, times, [first["cases"], now["cases"]])
    yield ""
    yield COLUMNS
    yield ""
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for name, case in CASES.items():
        yield _row(case, times["cases"].get(name), first["cases"].get(name), now["cases"].get(name))
    yield ""
    yield from _lines(first["cases"])
    yield "### Python outside torch"
    yield ""
    yield PYTHON
    yield ""
    yield "| training/problem | measured, ms per step | in the report, first | now |"
    yield "|---|---:|---:|---:|"
    for name in CASES:
        timed = [each.get("python_ms") for each in times["cases"].get(name, {}).get("slow", {}).get("timed", [])]
        if timed and None not in timed:
            told = (version["cases"].get(name, {}).get("python_ms", 0.0) for version in (first, now))
            yield f"| {name} | {median(timed):.2f} | {' | '.join(f'{each:.2f}' for each in told)} |"
    yield ""
    yield "### Misses of the trainings, and why"
    yield ""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, case in CASES.items():
        for miss in misses(case, now["cases"].get(name), times["cases"].get(name)):
            reasons.setdefault((miss, reason_for(case, now["cases"].get(name), miss)), []).append(f"`{name}`")
    for (miss, reason), names in sorted(reasons.items(), key=lambda each: len(each[1])):
        yield f"- {', '.join(names)}: {miss}. {reason}"


def _lines(first: Json) -> Iterator[str]:
    """Yields the part about recordings with the lines of calls."""
    again = load("lines")["cases"]
    now = {name: told for name, told in again.items() if told["line"] != "-"}
    exact = sum(each["line"] == "line" for each in now.values())
    before = sum(first.get(name, {}).get("line") == "line" for name in now)
    yield "### Exact lines, and gains of the same recordings"
    yield ""
    yield LINES.format(exact=exact, before=before, count=len(now))
    yield ""
    yield GAINS_AGAIN.format(
        predicted=sum(told["predicted"] is not None for told in again.values()),
        before=sum(first.get(name, {}).get("predicted") is not None for name in again),
        count=len(again),
        without=", ".join(f"`{name}`" for name, told in again.items() if told["predicted"] is None),
        **_inside_of(again),
    )
    yield ""
    yield "| training/problem | first | with lines | why not |"
    yield "|---|---|---|---|"
    for name, told in now.items():
        yield f"| {name} | {first.get(name, {}).get('line', '-')} | {told['line']} | {told['because']} |"
    yield ""


def _inside_of(again: Json) -> dict[str, int]:
    """Returns how many predicted gains of recordings that were made again contain the measured ones."""
    times = load("times")["cases"]
    known = {name: told for name, told in again.items() if told["predicted"] and name in times}
    bounds = {name for name, told in known.items() if is_bound(told)}
    right = {name for name, told in known.items() if inside(CASES[name], told, times[name])}
    return {
        "inside": len(right - bounds), "intervals": len(known) - len(bounds),
        "not_above": len(right & bounds), "bounds": len(bounds),
    }  # fmt: skip


NO_LINE, OUTSIDE, ABOVE = "no line", "gain outside the interval", "gain above its bound"


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
    if answer["line"] == "no":
        yield NO_LINE
    if inside(case, answer, times) is False:
        yield ABOVE if is_bound(answer) else OUTSIDE


def reason_for(case: Case, answer: Json | None, miss: str) -> str:
    """Returns the reason for a miss: that of the case, or the common one of the first cause or of the gains."""
    reasons = load("reasons")
    if miss == NO_LINE:
        common = reasons["line"].get(answer["causes"][0] if answer and answer["causes"] else "", "")
    else:
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


def _summary(planted: list[Case], times: Json, answers: list[Json]) -> Iterator[str]:
    """Yields the rows of the summary: one count per version of the analyser."""
    healthy = [case for case in CASES.values() if not case.words]
    lines = [case for case in planted if case.line]
    yield _count("problem: regime right", planted, answers, lambda case, answer: answer["regime_right"])
    yield _count("problem: named", planted, answers, lambda case, answer: answer["named"])
    yield _count("healthy: no problem found", healthy, answers, lambda case, answer: answer["named"])
    yield _count("line named", lines, answers, lambda case, answer: answer["line"] == "line")
    yield _count("line or function named", lines, answers, lambda case, answer: answer["line"] != "no")
    for basis, told, right in GAINS:
        yield _count(told, planted, answers, partial(_has_gain, basis))
        yield _count(f"{told}, and {right}", planted, answers, partial(_is_right, times, basis))
    yield _count(
        "after the fix: problem no longer named", planted, answers, lambda case, answer: not _is_left(case, answer)
    )
    errors = [
        [
            abs(answer["predicted"]["expected"] / gain(case, times["cases"][case.name]) - 1)
            for case in planted
            if (answer := version.get(case.name)) and answer["predicted"] and not is_bound(answer)
        ]
        for version in answers
    ]
    medians = " | ".join(f"{median(each):.0%}" if each else "-" for each in errors)
    yield f"| median error of the predicted gains | | {medians} |"


def _has_gain(basis: str, _case: Case, answer: Json) -> bool:
    return bool(answer["predicted"]) and answer["predicted"]["basis"] == basis


def _is_right(times: Json, basis: str, case: Case, answer: Json) -> bool:
    return _has_gain(basis, case, answer) and bool(inside(case, answer, times["cases"].get(case.name)))


def _count(title: str, cases: list[Case], answers: list[Json], holds: Any) -> str:
    counts = [sum(bool(case.name in each and holds(case, each[case.name])) for case in cases) for each in answers]
    return f"| {title} | {len(cases)} | {' | '.join(map(str, counts))} |"


def _is_left(case: Case, answer: Json) -> bool:
    """Tells whether the fixed half still has the problem as its first cause."""
    after = answer["after"]
    return after["severity"] != "none" and after["causes"][:1] == answer["causes"][:1]


def _row(case: Case, times: Json | None, *answers: Json | None) -> str:
    measured = ""
    if case.words and times:
        measured = f"{gain(case, times):.2f}x{' w' if case.wall else ''}"
    after = (answers[-1] or {}).get("after", {})
    cells = [
        f"{'' if case.words else '*healthy:* '}{case.name}",
        *(_verdict(answer) + ("" if not answer or answer["regime_right"] else " **no**") for answer in answers),
        *(SPELLED[answer["named"]] if answer else "-" for answer in answers),
        *(
            {"line": "yes", "function": "f", "no": "**no**", "-": "-"}[answer["line"]] if answer else "-"
            for answer in answers
        ),
        measured,
        *(_prediction(answer) for answer in answers),
        *({True: "yes", False: "**no**", None: ""}[inside(case, answer, times)] for answer in answers),
        f"{after['regime']} ({after['severity']})" if after.get("regime") else "",
    ]
    return f"| {' | '.join(cells)} |"


def _verdict(answer: Json | None) -> str:
    if not answer or not answer["verdict"]["regime"]:
        return "none" if answer else "-"
    verdict = answer["verdict"]
    return f"{verdict['regime']} {verdict['share'] or 0:.0%} ({verdict['severity']})"


def _prediction(answer: Json | None) -> str:
    if not answer or not answer["predicted"]:
        return ""
    predicted = answer["predicted"]
    return f"{predicted['expected']:.2f}x ({predicted['low']:.2f} to {predicted['high']:.2f})"
