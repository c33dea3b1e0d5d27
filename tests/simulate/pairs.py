"""Slow and fixed simulated trainings: the gain that the report predicts, and the gain that the fix really brings."""

import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from simulate.fixes import FIX_OF, FIXES
from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.problems import PROBLEMS
from simulate.program import Program
from simulate.run import Run
from simulate.training import program_of
from simulate.truth import window_of
from simulate.variation import IDEAL, Variation, drawn
from simulate.workload import Workload, healthy
from tb_bottleneck.attribution.trace_recording import Recording as AnalysedRecording
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.replay.gain import errors_of, without_fixes
from tb_bottleneck.replay.host_scale import host_scale_of
from tb_bottleneck.replay.modified_graph import unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.schema.bottleneck_pb2 import Finding, Report

# Workers deliver in bursts, so their mean rate shows only over many steps.
LONG = 40
BURSTY = ("loader in the main process", "too few workers")


@dataclass(frozen=True)
class Pair:
    """The predicted and the true gain of one training. `expected` is 0 if no gain was predicted.

    `true` is the gain of the ideal fix; `came` is that of a second run as a real one varies (simulate/variation.py).
    """

    name: str
    seed: int
    true: float
    came: float
    expected: float
    low: float
    high: float
    errors: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # replay/gain.py: errors_of

    @property
    def predicted(self) -> bool:
        """True if the report predicts a gain by replay."""
        return self.expected > 0

    @property
    def error(self) -> float:
        """Predicted over true gain, minus one."""
        return self.expected / self.true - 1

    @property
    def inside(self) -> bool:
        """True if the gain that came is within the predicted bounds, to the last digit that a report shows."""
        return round(self.low, 2) <= round(self.came, 2) <= round(self.high, 2)

    @property
    def width(self) -> float:
        """Upper bound / lower bound."""
        return self.high / self.low


def simulated(name: str, seed: int) -> Pair:
    """Diagnoses a training with one planted problem and measures its fix."""
    problem = PROBLEMS[name]
    workload = problem.make(seed)
    program = program_of(workload)
    run = Machine(program).run()
    recordings: list[AnalysedRecording] = []
    report = recorded_report(run, workload.stacks, recordings.append)
    finding = finding_of(report, (problem.cause, *problem.also))
    number = workers_of(finding) if finding is not None else 1
    if name in BURSTY:
        program = program_of(workload.but(steps=LONG))
    gains = gains_by(f"{name} {seed}", run, program, lambda start, how: FIXES[name](start, number, how))
    pair = pair_of(name, seed, gains, finding)
    return replace(pair, errors=errors_by_source(recordings[0], finding.cause)) if pair.predicted and finding else pair


def errors_by_source(recording: AnalysedRecording, cause: str) -> dict[str, tuple[float, float]]:
    """Returns what makes the interval of the gain of fixing this cause."""
    graph = unmodified_graph(RecordedGraph(recording))
    before = without_fixes(graph, host_scale_of(graph))
    after = before.with_fix(scenarios()[cause])
    return {} if after is None else errors_of(before, after)


def gains_by(
    name: str, slow: Run, program: Program, fix: Callable[[Program, Variation], Program]
) -> tuple[float, float]:
    """Returns the gain of the ideal fix of the program, and of one that varies as drawn by this name."""

    def gain(how: Variation) -> float:
        return step_ns(slow) / step_ns(Machine(how.applied(fix(program, how))).run())

    ideal = gain(IDEAL)
    return ideal, gain(drawn(name, ideal))


def recorded_report(run: Run, stacks: bool, keep: Callable[[AnalysedRecording], None] | None = None) -> Report:
    """Diagnoses a run, and passes its recording to `keep`.

    As the monitor does, its context gives the unprofiled step time; here there is no profiler overhead.
    """
    text = kineto_json(run, Recording(DIALECTS[3], stacks=stacks))
    context = json.dumps({"context": {"unprofiled_step_ns": median_step_ns(run)}})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.pt.trace.json"
        path.write_text(text.replace("{", '{"tb_bottleneck": ' + context + ", ", 1))
        return diagnose(str(path), keep=keep)


def step_ns(run: Run) -> float:
    """Returns the mean step time of the window that is analysed in a recording of this run."""
    begin, end = window_of(run, "profiler_step")
    marks = sum(row.name.startswith("ProfilerStep") for row in run.rows)
    return (end - begin) / (marks - (1 if marks >= 3 else 0))


def median_step_ns(run: Run) -> float:
    """Returns the median step time on the device, as a timer in the training loop would measure it."""
    marks = sorted(row.end for row in run.rows if row.name.startswith("ProfilerStep"))
    ends = [max([mark, *(op.end for op in run.ops if op.device == 0 and op.issued < mark)]) for mark in marks]
    return median(end - begin for begin, end in pairwise(ends))


def finding_of(report: Report, causes: tuple[str, ...]) -> Finding | None:
    """Returns the first finding with one of these causes, or None."""
    return next((finding for finding in report.findings if finding.cause in causes), None)


def workers_of(finding: Finding) -> int:
    """Returns the number (or multiple) of workers in the code that the report suggests."""
    match = re.search(r"num_workers=(\d+)", finding.fix.code)
    return int(match.group(1)) if match else 1


def pair_of(name: str, seed: int, gains: tuple[float, float], finding: Finding | None) -> Pair:
    """Combines the gains of the ideal and of the varied fix with the finding's prediction."""
    if finding is None or finding.speedup.basis != "replay":
        return Pair(name, seed, *gains, 0.0, 0.0, 0.0)
    return Pair(name, seed, *gains, finding.speedup.expected, finding.speedup.low, finding.speedup.high)


# --- Several problems at once ---


def planned(seed: int) -> Pair:
    """Diagnoses a training with two or three problems and measures all fixes of the plan together."""
    workload = combined(seed)
    program = program_of(workload)
    run = Machine(program).run()
    report = recorded_report(run, workload.stacks)
    name = " + ".join(step.cause for step in report.plan)
    if any(step.cause in ("loader_in_main_process", "too_few_workers") for step in report.plan):
        program = program_of(workload.but(steps=LONG))
    gains = gains_by(f"plan {seed}", run, program, lambda start, how: all_fixed(start, report, how))
    if not report.plan:
        return Pair("no plan", seed, *gains, 0.0, 0.0, 0.0)
    last = report.plan[-1]
    return Pair(name, seed, *gains, last.speedup_total, last.low, last.high)


def all_fixed(program: Program, report: Report, how: Variation) -> Program:
    """Applies every fix of the plan to the program."""
    for step in report.plan:
        number = workers_of(next(finding for finding in report.findings if finding.cause == step.cause))
        program = FIX_OF[step.cause](program, number, how)
    return program


def combined(seed: int) -> Workload:
    """Returns a healthy training with two or three planted problems of any size."""
    rng, well = random.Random(seed), healthy(seed)

    def part() -> int:
        return int(well.step_ns * rng.uniform(0.3, 1.5))

    problems: list[dict[str, object]] = [
        {"loader": "main", "load_ns": part() + well.step_ns},
        {"save_every": 2, "save_ns": 2 * part(), "stacks": True},
        {"collect_every": 1, "collect_ns": part() + well.step_ns, "stacks": True},
        {"pauses": 1, "pause_ns": part() + well.step_ns},
        {"empty_every": 1, "mallocs": 8},
        {"buckets": 3, "bucket_ns": part() // 2},
        {"pinned": False, "batch_bytes": part() * 5, "loader": "workers", "load_ns": 1_000_000},
    ]
    changed = well.but(stacks=True)
    for change in rng.sample(problems, rng.choice((2, 2, 3))):
        changed = changed.but(**change)
    return changed
