"""Verdicts rest on what a run did, and not on how its file is written: simulated runs, judged again with parts lost."""

import gzip
import json

import pytest
from helpers.perturbations import PERTURBATIONS
from perturb import ABSTAINS, NEVER, OTHER, RIGHT, SAME, grade, judged, page
from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.problems import PROBLEMS
from simulate.training import program_of
from simulate.workload import healthy, launch_bound

RUNS = {
    "input": PROBLEMS["loader in the main process"].make(3),
    "launch": launch_bound(3).but(loader=""),
    "compute": healthy(3).but(contractions=0.9, loader="", kernel_ns=400_000),
    "sync": PROBLEMS["scalar reads in the forward pass"].make(3),
}
# What an honest answer becomes where the rows that tell the regime are gone.
HONEST = {
    ("input", "without_annotations"): ("host", "launch"),  # the loader's own row is one of them
    ("sync", "without_calls"): ("launch",),  # waits are runtime calls; what is left are slow operators
    # A read is told by its copy, and by the end of it inside the call: without them the idle time behind it is
    # dispatching, half of which may be the profiler's own.
    ("sync", "without_copies"): ("launch", "memory"),
    ("sync", "no_arguments"): ("launch", "memory"),
    ("sync", "device_clock_ahead"): ("launch", "memory"),
}


@pytest.fixture(scope="module")
def written():
    texts = {}
    for regime, workload in RUNS.items():
        run = Machine(program_of(workload)).run()
        texts[regime] = kineto_json(run, Recording(DIALECTS[3], stacks=False)).encode()
    return texts


@pytest.mark.parametrize("change", PERTURBATIONS)
@pytest.mark.parametrize("regime", RUNS)
def test_a_run_keeps_its_verdict_or_has_none(written, regime, change):
    said = judged(written[regime], PERTURBATIONS[change])
    assert said in (regime, *HONEST.get((regime, change), ())) or said.startswith("incomplete"), said


@pytest.mark.parametrize("change", PERTURBATIONS)
def test_every_change_is_told_in_a_line(change):
    assert (PERTURBATIONS[change].__doc__ or "").strip().endswith(".")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("input", SAME),
        ("host", RIGHT),
        ("incomplete:warmup", ABSTAINS),
        ("compute", OTHER),
        ("sync", NEVER),
    ],
)
def test_answers_are_graded_from_the_same_to_the_forbidden(said, expected):
    assert grade({"truth": "input", "also": ["host"], "never": ["sync"]}, "input", said) == expected


def test_two_ways_of_not_telling_are_both_right():
    label = {"truth": "incomplete:warmup", "also": [], "never": []}
    assert grade(label, "incomplete:warmup", "incomplete:insufficient_data") == RIGHT


def test_the_page_counts_what_it_lists(written, tmp_path):
    (tmp_path / "one.json.gz").write_bytes(gzip.compress(written["input"]))
    label = {"name": "one", "truth": "input", "also": [], "never": []}
    (tmp_path / "labels.json").write_text(json.dumps([label]))
    changes = {name: PERTURBATIONS[name] for name in ("shuffled", "without_operators")}
    lines = list(page(tmp_path, [label], changes))
    assert "| **all** | | 1 | 0 | 1 | 0 | 0 |" in lines
    assert any(line.startswith("| one | without_operators | input | incomplete") for line in lines)
