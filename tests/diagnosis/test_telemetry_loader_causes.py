"""What the settings and the machine add to the verdict on a loader: workers, epochs, storage and pinning."""

from dataclasses import replace

import pytest
from diagnosis.judged_runs import judged, share_of
from helpers import simulated_telemetry
from helpers.simulated_telemetry import FACTS, HOST, SimulatedPhase
from helpers.telemetry_problems import simulated_phase

RESTARTED = {"workers": 4, "persistent_workers": False, "worker_start": "spawn"}


@pytest.mark.parametrize(
    ("facts", "epoch", "cause"),
    [
        (RESTARTED, 12, "restarted_workers"),
        (RESTARTED | {"persistent_workers": True}, 12, "too_few_workers"),
        (RESTARTED, 4, "too_few_workers"),  # one long wait in each round of four workers
        ({}, 12, "too_few_workers"),
    ],
    ids=["each epoch starts workers", "they persist", "bursts", "not recorded"],
)
def test_workers_that_each_epoch_starts_anew_need_no_further_workers(facts, epoch, cause):
    """With spawn, the first batch of an epoch waits for its workers' imports: more workers make that longer."""
    without = ("epoch_start",) if epoch == 4 else ()
    report = judged(SimulatedPhase(epoch=epoch, first_load=250.0 * epoch / 4), facts=FACTS | facts, without=without)
    assert report.verdict.regime == "input"
    assert report.findings[0].cause == cause
    if cause == "restarted_workers":
        assert "num_workers=4, persistent_workers=True" in report.findings[0].fix.code
        assert report.findings[0].cost_share == pytest.approx(share_of(report, "input"), abs=0.05)
        assert "by spawn, in each epoch anew" in [row.text for row in report.findings[0].evidence]


@pytest.mark.parametrize("wait", [0.8, 0.4, 0.0])
def test_the_load_of_other_processes_is_named_beside_the_loader(wait, monkeypatch):
    """All cores are busy, most of them for others. Free cores would save the workers' wait for one; a better loader
    may save the whole wait, for example if it sleeps."""
    monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"worker_core_wait": 0.0})
    workers = {"worker_count": 2.0, "worker_cores": 2 * (1 - wait) * 0.8, "worker_core_wait": 2 * wait * 0.8}
    readings = {"cpu_usable_cores": 4.0, "cpu_busy_cores": 4.0, "process_cores": 0.2} | workers
    facts = FACTS | {"workers": 2, "cores": 4}
    report = judged(replace(simulated_phase("few_workers"), readings=readings), facts=facts)
    costs = {finding.cause: finding.cost_share for finding in report.findings}
    assert report.findings[0].cause == "too_few_workers"
    assert costs["too_few_workers"] == pytest.approx(share_of(report, "input"), rel=0.02)
    if wait:
        assert costs["contended_cores"] == pytest.approx(wait * 0.8 * share_of(report, "input"), rel=0.02)
    else:
        assert "contended_cores" not in costs


def test_the_lines_of_slow_workers_are_those_that_make_batches():
    fetch = "torch/utils/data/_utils/fetch.py(49): _MapDatasetFetcher.fetch"
    stack = f"{fetch};data.py(3): D.__getitem__;data.py(9): Blur.__call__"
    facts = FACTS | {"loader_stacks": {"stacks": [[stack, 9e9]], "other_ns": 1e9, "batches": 50, "waiting_ns": 0}}
    report = judged(simulated_phase("few_workers"), facts=facts)
    [place] = report.findings[0].where
    assert (place.file, place.line, place.function, place.share) == ("data.py", 9, "Blur.__call__", 0.9)
    assert "Most of it is in Blur.__call__ (data.py:9)." in report.verdict.headline


def test_two_workers_on_two_busy_cores_are_not_told_to_be_four():
    readings = {"cpu_usable_cores": 2.0, "cpu_busy_cores": 2.0, "worker_count": 2.0, "worker_cores": 1.0}
    made = replace(simulated_phase("few_workers"), readings=readings)
    report = judged(made, facts=FACTS | {"workers": 2, "cores": 2})
    assert report.findings[0].cause == "too_few_cores"


def test_idle_workers_on_cores_that_others_keep_busy_wait_for_something_else():
    readings = {"cpu_usable_cores": 2.0, "cpu_busy_cores": 2.0, "worker_count": 8.0, "worker_cores": 0.09}
    made = replace(simulated_phase("few_workers"), readings=readings)
    report = judged(made, facts=FACTS | {"workers": 8, "cores": 2})
    assert report.findings[0].cause == "slow_storage"


@pytest.mark.parametrize(("without_batch_ns", "cause"), [(9e9, "contended_cores"), (1e9, "slow_storage")])
def test_with_a_full_queue_the_training_waits_for_a_core(without_batch_ns, cause):
    readings = {"cpu_usable_cores": 2.0, "cpu_busy_cores": 2.0, "worker_count": 2.0, "worker_cores": 0.09}
    readings |= {"cpu_pressure": 0.6, "run_queue": 5.0}
    sampled = {"stacks": [["data.py(3): __getitem__", 1e9]], "batches": 50, "waiting_ns": without_batch_ns}
    made = replace(simulated_phase("few_workers"), readings=readings)
    report = judged(made, facts=FACTS | {"workers": 2, "cores": 2, "loader_stacks": sampled | {"other_ns": 1e9}})
    assert report.findings[0].cause == cause


@pytest.mark.parametrize("problem", ["few_workers", "in_process"])
def test_telemetry_on_windows_says_what_workers_need_there(problem):
    """Reports about traces said it, those about telemetry did not."""
    on_windows = judged(simulated_phase(problem), facts=FACTS | {"os": "Windows"}).findings[0]
    elsewhere = judged(simulated_phase(problem), facts=FACTS | {"os": "Linux"}).findings[0]
    [row] = [row for row in on_windows.evidence if row.label == "Operating system"]
    assert (row.text, "__main__" in row.compared_with) == ("Windows", True)
    guard, *lines = on_windows.fix.code.splitlines()
    assert guard.startswith('if __name__ == "__main__":')
    assert [line.removeprefix("    ") for line in lines] == elsewhere.fix.code.splitlines()
    assert "Operating system" not in [row.label for row in elsewhere.evidence]


LAZY = {"worker_count": 1.0, "worker_cores": 0.15, "io_pressure": 0.0}


@pytest.mark.parametrize(
    ("readings", "cause"),
    [
        (LAZY | {"worker_core_wait": 0.05}, "slow_storage"),
        (LAZY | {"worker_core_wait": 0.70}, "too_few_workers"),
        (LAZY | {"worker_cores": 0.9, "worker_core_wait": 0.05}, "too_few_workers"),
        (LAZY, "slow_storage"),  # recorded before, on a machine without pressure on the cores
        (LAZY | {"cpu_pressure": 0.5}, "too_few_workers"),
        (LAZY | {"cpu_busy_cores": 15.9}, "too_few_workers"),
    ],
    ids=["waits", "waits for a core", "computes", "not counted", "not counted, pressure", "not counted, busy cores"],
)
def test_a_worker_that_neither_runs_nor_waits_for_a_core_waits_for_the_storage(readings, cause, monkeypatch):
    """Its pauses of a millisecond per file showed in no counter of the machine: more workers were advised."""
    if "worker_core_wait" in readings:
        monkeypatch.setattr(simulated_telemetry, "HOST", HOST | {"worker_core_wait": 0.0})
    made = replace(simulated_phase("few_workers"), readings=readings)
    assert judged(made, facts=FACTS | {"workers": 1}).findings[0].cause == cause


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("rotational", "local SSD"),
        ("network", "local SSD"),
        ("ssd", "large shards"),
        ("memory", "locks"),
        (7, "shards"),
    ],
)
def test_the_fix_of_slow_storage_fits_the_storage(kind, says):
    facts = FACTS | {"workers": 1, "dataset_storage": kind, "dataset_filesystem": "ext4"}
    waiting = replace(simulated_phase("few_workers"), readings=LAZY | {"io_pressure": 0.3})
    code = judged(waiting, facts=facts).findings[0].fix.code
    assert says in code
    assert ("SSD" in code) == (kind not in ("ssd", "memory"))
    read = replace(waiting, readings=LAZY | {"io_pressure": 0.0})
    assert ("locks" in judged(read, facts=facts).findings[0].fix.code) == (kind != "network"), (
        "no thread waits for a disk"
    )


@pytest.mark.parametrize(("pins", "advised"), [(True, False), (False, True), (None, True)])
def test_pinning_is_advised_only_where_the_loader_does_not_pin(pins, advised):
    facts = FACTS if pins is None else FACTS | {"pin_memory": pins}
    finding = judged(simulated_phase("copies"), facts=facts).findings[0]
    assert finding.cause == "exposed_copies"
    assert ("pin_memory=True" in finding.fix.code) == advised
    assert "non_blocking=True" in finding.fix.code
