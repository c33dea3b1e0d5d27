"""Judges the runs of the second simulator, and writes how often the verdict is right for a page of figures."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pages import progress
from second_simulator.kineto import write
from second_simulator.programs import PROGRAMS
from second_simulator.truth import DEVICE_WORK, NEAR, Truth, simulate, truth
from simulate.cases import answer_of

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema.bottleneck_pb2 import Report

SCORED = 200
"""Seeds that the page shows, from 0 on. They were drawn before the first score."""

BEYOND = 1.1
"""A fix cannot gain more than removing the loss. A low bound this many times as high is a wrong prediction."""


@dataclass(frozen=True)
class Judgement:
    """A simulated run with its truth and the report about it."""

    seed: int
    kind: str
    stack: bool
    truth: Truth
    report: Report

    @property
    def answer(self) -> str:
        return answer_of(self.report)

    @property
    def right(self) -> bool:
        return self.answer in self.truth.accepted

    @property
    def largest_loss(self) -> float:
        """The largest share of the time that removing one kind of loss recovers."""
        shares = self.truth.recoverable.items()
        return max((share for regime, share in shares if regime not in DEVICE_WORK), default=0.0)


def judge(seed: int) -> Judgement:
    """Simulates a seed, and diagnoses the file that is written about it."""
    run = simulate(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt.trace.json.gz"
        write(path, run.machine, run.ranks)
        report = diagnose(str(path))
    return Judgement(seed, run.kind, run.machine.stack, truth(run, seed), report)


def judged(seeds: Iterable[int]) -> list[Judgement]:
    """Judges many seeds."""
    seeds = list(seeds)
    judgements = []
    for number, seed in enumerate(seeds, 1):
        progress("run of the second simulator", number, len(seeds))
        judgements.append(judge(seed))
    return judgements


def section(scored: int = SCORED) -> Iterator[str]:
    """Yields the section of the page about the first seeds."""
    runs = judged(range(scored))
    yield f"## {len(runs)} runs of a second simulator"
    yield ""
    yield "`tests/second_simulator/` was written from the documentation of PyTorch and CUDA by an author who had not"
    yield "read the rules, and was frozen before its first score. Its truth is what a run gains if one kind of loss is"
    yield "removed and the same program runs again. Regimes that gain as much within five points are all right. The"
    yield "regime of the device's work is right too if it gains more than every loss, or if no loss gains 15 %."
    yield ""
    yield from _by_kind(runs)
    yield ""
    yield from _figures(runs)
    yield ""
    yield "### Misses of the second simulator"
    yield ""
    yield from [_miss(run) for run in runs if not run.right] or ["None."]


def _by_kind(runs: list[Judgement]) -> Iterator[str]:
    yield "| program | runs | right | answers |"
    yield "|---|---:|---:|---|"
    for kind in PROGRAMS:
        mine = [run for run in runs if run.kind == kind]
        answers = ", ".join(sorted({run.answer for run in mine}))
        yield f"| {kind.replace('_', ' ')} | {len(mine)} | {sum(run.right for run in mine)} | {answers} |"
    yield f"| **all** | {len(runs)} | {sum(run.right for run in runs)} | |"


def _figures(runs: list[Judgement]) -> Iterator[str]:
    quiet = [run for run in runs if run.largest_loss < NEAR and run.truth.accepted != {"gpu_unused"}]
    silent = sum(run.answer in DEVICE_WORK for run in quiet)
    yield f"Without a loss of {NEAR:.0%}, the verdict is the device's work in {silent} of {len(quiet)} runs."
    named = [run for run in runs if run.right and run.answer in run.truth.recoverable and run.answer not in DEVICE_WORK]
    errors = [abs(run.report.verdict.share - run.truth.recoverable[run.answer]) for run in named]
    yield f"Where a loss is named rightly, its share differs from what removing it gains by {median(errors) * 100:.1f}"
    yield f"points in the median of {len(named)} runs, and by {max(errors) * 100:.1f} points at most."
    gains = [gain for run in runs for gain in _gains(run)]
    above = sum(low > BEYOND * removed for low, removed in gains)
    yield f"Of {len(gains)} simulated gains, {above} have a low bound that is over {BEYOND - 1:.0%} above what removing"
    yield "the whole loss gains."


def _gains(run: Judgement) -> Iterator[tuple[float, float]]:
    """Yields the low bound of each simulated gain of fixing a loss, and the gain of removing that loss."""
    for finding in run.report.findings:
        share = run.truth.recoverable.get(finding.regime)
        if share is not None and finding.regime not in DEVICE_WORK and finding.speedup.basis == "replay":
            yield finding.speedup.low, 1 / (1 - share)


def _miss(run: Judgement) -> str:
    gains = sorted(run.truth.recoverable.items(), key=lambda item: -item[1])[:4]
    gain = ", ".join(f"{regime} {share * 100:.0f}" for regime, share in gains)
    shares = sorted(run.report.account, key=lambda row: -row.share)[:4]
    account = ", ".join(f"{row.regime} {row.share * 100:.0f}" for row in shares)
    right, stack = " or ".join(sorted(run.truth.accepted)), "with" if run.stack else "without"
    told = f"answered **{run.answer}** ({run.report.verdict.severity}), right: {right}"
    run_text = f"- {run.kind.replace('_', ' ')}, seed {run.seed}, {stack} stacks"
    return f"{run_text}: {told}; gains (points): {gain}; account: {account}"
