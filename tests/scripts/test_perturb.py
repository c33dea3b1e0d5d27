"""The verdict of a simulated run stays right, or becomes "cannot tell", if parts of its recording are lost."""

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
# Other accepted answers if the rows that show the regime are missing.
ACCEPTED = {
    ("input", "without_annotations"): ("host", "launch"),  # the loader's row is an annotation
    ("sync", "without_calls"): ("launch",),  # waits are runtime calls; only slow operators remain
    # A read is recognised by its copy, which ends inside the call. Otherwise the idle time after it counts as
    # dispatching, of which up to half may be profiler overhead.
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
    answer = judged(written[regime], PERTURBATIONS[change])
    assert answer in (regime, *ACCEPTED.get((regime, change), ())) or answer.startswith("incomplete"), answer


@pytest.mark.parametrize("change", PERTURBATIONS)
def test_every_change_is_described_by_a_sentence(change):
    assert (PERTURBATIONS[change].__doc__ or "").strip().endswith(".")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("input", SAME),
        ("host", RIGHT),
        ("incomplete:warmup", ABSTAINS),
        ("compute", OTHER),
        ("sync", NEVER),
    ],
)
def test_answers_are_graded_from_the_same_to_the_excluded(answer, expected):
    assert grade({"truth": "input", "also": ["host"], "never": ["sync"]}, "input", answer) == expected


def test_two_reasons_for_no_verdict_are_both_right():
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
