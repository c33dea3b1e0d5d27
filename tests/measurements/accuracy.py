"""Measures how often the diagnosis is right: `python tests/measurements/accuracy.py [--runs N] [--write]`.

First come simulated trainings: random ones, ones with a planted problem, and hard negatives, which are healthy but look
similar. Their truth is known by construction (simulate/truth.py). Then come the runs of a second simulator
(second_simulator/score.py). If the environment variable TB_BOTTLENECK_TRACES
names a folder of labelled recordings, these are judged too; if TB_BOTTLENECK_PAIRS names one of public pairs before and
after a change (helpers/real_pairs.py), both recordings of each pair are compared. The table goes to stdout, and with
--write to ACCURACY.md; progress goes to stderr. Everything is drawn from seeds: the same code gives the same
table.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from helpers.real_pairs import NO_FOLDER, RealPair, real_pairs  # noqa: E402
from pages import progress, publish  # noqa: E402
from second_simulator.score import SCORED  # noqa: E402
from second_simulator.score import section as second_simulator  # noqa: E402
from simulate.cases import Case, answer_of, plan  # noqa: E402
from simulate.examine import BOUNDS, RECOVERABLE, TOLERANCE, examine, recorded  # noqa: E402
from simulate.problems import HARD_NEGATIVES, PROBLEMS  # noqa: E402

from tb_bottleneck.diagnosis.trace import diagnose  # noqa: E402
from tests.measurements.trainings.table import section  # noqa: E402

REGIMES = (*RECOVERABLE, *BOUNDS)


# --- Simulated trainings ---


def simulated(runs: int) -> list[Case]:
    """Examines all runs of the plan."""
    cases = []
    for number, (origin, seed, workload) in enumerate(plan(runs), 1):
        progress("simulated run", number, runs)
        cases.append(Case(origin, seed, examine(workload, recorded(workload, seed))))
    return cases


def verdict_table(cases: list[Case]) -> Iterator[str]:
    """Yields precision and recall by regime. A run with several right answers counts for the one that was given."""
    true, given, hit = Counter[str](), Counter[str](), Counter[str]()
    for case in cases:
        correct = case.answer in case.right_answers
        true[case.answer if correct else case.right_answers[0]] += 1
        given[case.answer] += 1
        hit[case.answer] += correct
    yield "| verdict | runs | answers | right | precision | recall |"
    yield "|---|---:|---:|---:|---:|---:|"
    for regime in [*REGIMES, *sorted(set(given) - set(REGIMES))]:
        precision, recall = _ratio(hit[regime], given[regime]), _ratio(hit[regime], true[regime])
        yield f"| {regime} | {true[regime]} | {given[regime]} | {hit[regime]} | {precision} | {recall} |"
    yield f"| **all** | {len(cases)} | {len(cases)} | {sum(hit.values())} | {_ratio(sum(hit.values()), len(cases))} | |"


def cause_table(cases: list[Case]) -> Iterator[str]:
    """Yields the runs whose first finding names the planted problem, and the healthy runs without a finding."""
    yield "| planted | runs | named | |"
    yield "|---|---:|---:|---|"
    for name, problem in PROBLEMS.items():
        mine = [case.examination.report for case in cases if case.origin == name]
        named = sum(bool(report.findings) and report.findings[0].cause in problem.named for report in mine)
        causes = " or ".join(f"`{cause}`" for cause in problem.named if cause)
        yield f"| {name} | {len(mine)} | {named} | first finding is {causes} |"
    for name in HARD_NEGATIVES:
        mine = [case.examination.report for case in cases if case.origin == name]
        clean = sum(report.verdict.severity == "none" for report in mine)
        yield f"| *healthy:* {name} | {len(mine)} | {clean} | severity is `none` |"


def account_table(cases: list[Case]) -> Iterator[str]:
    """Yields the errors of the account in points, which are hundredths of the window."""
    judged = [case for case in cases if case.examination.account]
    yield "| regime | runs that have it | mean error | mean where it has ≥ 1 % | largest error | in run |"
    yield "|---|---:|---:|---:|---:|---|"
    for regime in judged[0].examination.account:
        errors = [(abs(case.examination.errors[regime]), case) for case in judged]
        having = [error for error, case in errors if case.examination.truth.share(regime) >= 0.01]
        largest, case = max(errors, key=lambda pair: pair[0])
        where = f"{case.origin} {case.seed}" if largest >= 0.005 else ""
        mean, among = _points(fmean(error for error, _ in errors)), _points(fmean(having)) if having else ""
        yield f"| {regime} | {len(having)} | {mean} | {among} | {_points(largest)} | {where} |"
    within = sum(case.examination.worst() <= TOLERANCE for case in judged)
    yield ""
    yield f"Every regime within {_points(TOLERANCE)} points of the truth: {within} of {len(judged)} runs."


def misses(cases: list[Case]) -> Iterator[str]:
    """Yields every run with a wrong verdict, a wrong first cause or an inaccurate account."""
    for case in cases:
        wrong = "; ".join(_errors_of(case))
        if wrong:
            yield f"- {case.origin}, seed {case.seed} ({case.examination.recording.dialect.name}): {wrong}"


def _errors_of(case: Case) -> Iterator[str]:
    examination = case.examination
    if case.answer not in case.right_answers:
        yield f"answered **{case.answer}**, right: {' or '.join(case.right_answers)}"
    problem = PROBLEMS.get(case.origin)
    causes = [finding.cause for finding in examination.report.findings]
    if problem and (causes[0] if causes else "") not in problem.named:
        yield f"planted `{problem.cause}`, found {', '.join(f'`{cause}`' for cause in causes) or 'nothing'}"
    off = [
        f"{regime} {_points(examination.truth.share(regime))} → {_points(share)}"
        for regime, share in examination.account.items()
        if abs(examination.errors[regime]) > TOLERANCE
    ]
    if off:
        yield f"account (points, true → reported): {', '.join(off)}"


# --- Labelled recordings ---


def labelled(folder: Path) -> Iterator[str]:
    """Yields the table of the labelled recordings in a folder."""
    labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    rows, hits, forbidden = [], 0, 0
    for number, label in enumerate(labels, 1):
        progress("labelled recording", number, len(labels))
        answer = answer_of(diagnose(str(folder / f"{label['name']}.json.gz")))
        right = [label["truth"], *label["also"]]
        hit, never = answer in right, answer in label["never"]
        hits, forbidden = hits + hit, forbidden + never
        mark = "yes" if hit else "**never**" if never else "**no**"
        cells = (label["name"], " or ".join(right), answer, mark, label["confidence"], label.get("source", ""))
        rows.append(f"| {' | '.join(cells)} |")
    yield f"{hits} of {len(labels)} answers are right; {forbidden} are answers that the label rules out."
    yield ""
    yield "| recording | label | answer | right | confidence of the label | source |"
    yield "|---|---|---|---|---|---|"
    yield from rows


# --- Compared pairs ---


def compared(pairs: Sequence[RealPair]) -> Iterator[str]:
    """Yields the table of the comparisons of public pairs."""
    rows, wrong, counted = [], 0, 0
    for number, pair in enumerate(pairs, 1):
        progress("public pair", number, len(pairs))
        if not pair.facts.get("compare", True):
            continue
        problem = pair.comparison_problem()
        counted, wrong = counted + pair.counted, wrong + (pair.counted and bool(problem))
        cells = (
            pair.name,
            "yes" if pair.counted else "no",
            f"**{problem}**" if problem else "yes",
            pair.facts["source"],
        )
        rows.append(f"| {' | '.join(cells)} |")
    yield f"{counted - wrong} of {counted} counted comparisons are right: the step times are those measured otherwise,"
    yield "the same work is recognised, and a difference is found where there is one, only there. Pairs that differ in"
    yield "more than the named change are not counted."
    yield ""
    yield "| pair | counted | right | source |"
    yield "|---|---|---|---|"
    yield from rows


# --- The page ---


def page(runs: int, second_runs: int = SCORED) -> Iterator[str]:
    """Yields the whole page, line by line: so many runs of the simulator, and of the second one."""
    cases = simulated(runs)
    yield "# Accuracy"
    yield ""
    yield "Written by `python tests/measurements/accuracy.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield "Read them with care. The simulator contains only what its authors know about trainings, and it defines the"
    yield "regimes as the analyser does: it finds errors of the analysis, not of the definitions. The analyser was"
    yield "debugged with other seeds than these. The public recordings are not held out: the rules were developed with"
    yield "them, and their labels are judgements."
    yield ""
    yield f"## {len(cases)} simulated trainings"
    yield ""
    yield "`tests/simulate/` describes them and defines their truth. There are several right answers if shares differ"
    yield f"from each other, or from the smallest share worth recovering, by less than {_points(TOLERANCE)} points."
    yield ""
    yield from verdict_table(cases)
    yield ""
    yield "### Planted problems and hard negatives"
    yield ""
    yield from cause_table(cases)
    yield ""
    yield "### The account: error of the shares, in points of the window"
    yield ""
    yield from account_table(cases)
    yield ""
    yield "### Misses"
    yield ""
    yield from list(misses(cases)) or ["None."]
    yield ""
    yield from second_simulator(second_runs)
    yield ""
    yield "## Labelled public recordings"
    yield ""
    folder = os.environ.get("TB_BOTTLENECK_TRACES", "")
    if folder:
        yield from labelled(Path(folder))
    else:
        yield "Not judged this time: TB_BOTTLENECK_TRACES names no folder."
    yield ""
    yield "## Compared public pairs"
    yield ""
    pairs = real_pairs()
    if pairs:
        yield from compared(pairs)
    else:
        yield NO_FOLDER
    yield ""
    yield from section()


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _points(share: float) -> str:
    return f"{share * 100:.2f}"


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Measures how often the diagnosis is right.")
    parser.add_argument("--runs", type=int, default=400, help="simulated trainings (default: 400)")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/ACCURACY.md as well")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    publish(page(options.runs), HERE / "ACCURACY.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
