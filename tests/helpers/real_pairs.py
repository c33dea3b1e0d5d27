"""Pairs of public recordings before and after one known change, from the folder that TB_BOTTLENECK_PAIRS names.

The folder has `pairs.json` and, for each of its pairs, NAME__before.json.gz and NAME__after.json.gz. The recordings are
not part of this project.
"""

import json
import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tb_bottleneck.bottlenecks.plan import predict
from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun, judge_run
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.replay.gain import Gain

NO_FOLDER = "Not measured this time: TB_BOTTLENECK_PAIRS names no folder."
TIMES_WITHIN, DIFFERENT_FROM = 0.03, 0.05


@dataclass(frozen=True, eq=False)
class RealPair:
    """One pair. `facts` is its entry in pairs.json, `folder` the folder of its recordings."""

    folder: Path
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def counted(self) -> bool:
        """False if the recordings differ in more than the named change."""
        return bool(self.facts.get("counted"))

    @property
    def measured(self) -> float:
        """Time per step before / after; per sample if the change is of the batch size."""
        facts = self.facts
        return float(facts["step_before_ms"] / facts["step_after_ms"] * facts.get("per_step_factor", 1))

    @cached_property
    def before(self) -> ComparedRun | None:
        """The recording before the change; None if it gets no verdict."""
        run = self._judged("before")
        return run if isinstance(run, ComparedRun) else None

    def prediction(self) -> Gain | None:
        """Returns what is predicted from the first recording alone: the best offer for the causes that are fixed."""
        how, run = self.facts.get("predict"), self.before
        if not how or run is None:
            return None
        if "what_if" in how:
            return _changed(run, how["what_if"])
        predicted = predict(run.recording, run.causes)
        offers = [gain for cause, gain in predicted.gains.items() if cause in how["causes"]]
        for step in predicted.plan:
            if step.cause not in how["causes"]:
                break
            offers.append(step.total)
        return max(offers, key=lambda gain: gain.expected, default=None)

    def comparison_problem(self) -> str:
        """Returns what is wrong with the comparison of both recordings; empty if nothing is."""
        runs = self._judged("before") if self.before is None else self.before, self._judged("after")
        found, facts = compare_runs(*runs), self.facts
        if not found.comparable:
            return found.headline
        for side, ns in (("before", found.a_ns), ("after", found.b_ns)):
            ms = facts.get(f"compare_{side}_ms")
            if ms and abs(ns / 1e6 / ms - 1) > TIMES_WITHIN:
                return f"{side}: {ns / 1e6:.1f} ms instead of {ms}"
        if facts.get("same_work") and not found.similarity.same_work:
            return "not recognised as the same work"
        if facts.get("null"):
            return "a difference between equal runs" if found.difference in ("faster", "slower") else ""
        ratio = facts["step_before_ms"] / facts["step_after_ms"]
        differs = facts.get("compare_before_ms") and abs(ratio - 1) > DIFFERENT_FROM
        return f"misses a difference of {ratio:.2f}" if differs and found.difference == "none" else ""

    def _judged(self, side: str) -> JudgedRun | UnjudgedRun:
        return judge_run(self.name, [str(self.folder / f"{self.name}__{side}.json.gz")])


def real_pairs() -> tuple[RealPair, ...]:
    """Returns the pairs of the folder, the same ones each time; none if there is no folder."""
    return _pairs_of(Path(os.environ.get("TB_BOTTLENECK_PAIRS") or "/nonexistent"))


@cache
def _pairs_of(folder: Path) -> tuple[RealPair, ...]:
    if not (folder / "pairs.json").is_file():
        return ()
    return tuple(RealPair(folder, facts) for facts in json.loads((folder / "pairs.json").read_text(encoding="utf-8")))


def _changed(run: ComparedRun, options: list[str]) -> Gain | None:
    """Returns the gain of changes that are written as the options of `tb-bottleneck what-if`."""
    names = [name.lstrip("-") for name in options[::2]]
    values = [int(text) if text.isdecimal() else text for text in options[1::2]]
    said = what_if(run, WhatIfOptions(**dict(zip(names, values, strict=True))))
    return Gain(said.after.speedup, said.after.low, said.after.high) if said.HasField("after") else None
