"""Fetches from the loader: even and slow fetches, the bursts of workers, and reads of files."""

import json

import pytest
from helpers.draw import drawn, drawn_trace
from simulate.examine import measured
from simulate.problems import PROBLEMS
from simulate.workload import healthy

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.loader import (
    batches_seen,
    loader_idle,
    loader_reads,
    slowest_fetch,
    uneven_fetches,
    usual_fetch,
    waiting_fetches,
)
from tb_bottleneck.bottlenecks.input.rule import RULE
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ONE, SEVERAL = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"


def fetched(tmp_path, milliseconds, iterator=ONE, frames=()):
    """A recording of steps of 100 ms, each with a fetch of so many milliseconds and a kernel.

    Each of the Python `frames` takes the first half of a fetch.
    """
    events = []
    for step, length in enumerate(milliseconds):
        at = step * 100_000
        row = {"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation"}
        events.append(row | {"name": f"ProfilerStep#{step}", "ts": at, "dur": 100_000})
        events.append(row | {"name": f"enumerate(DataLoader)#{iterator}.__next__", "ts": at, "dur": length * 1000})
        half = {"cat": "python_function", "ts": at, "dur": length * 500}
        events += [row | half | {"name": name, "args": {"Python id": len(events)}} for name in frames]
        link = {"correlation": step + 1, "device": 0, "stream": 7, "grid": [999, 1, 1]}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 99_000, "dur": 3, "args": link}
        kernel = {"cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at + 99_010, "dur": 900, "args": link}
        events += [row | call, row | kernel]
    path = tmp_path / "f.pt.trace.json"
    path.write_text(json.dumps({"with_stack": int(bool(frames)), "traceEvents": events}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace))


def test_slow_fetches_among_usual_ones_are_uneven(tmp_path):
    recording = fetched(tmp_path, [5, 5, 5, 80, 5, 5, 5, 5, 60, 5, 5])  # the first step is left out
    assert uneven_fetches(recording).value == pytest.approx((75 + 55) / (8 * 5 + 80 + 60))
    assert usual_fetch(recording).value == 5e6
    slowest = slowest_fetch(recording)
    assert (slowest.value, slowest.end - slowest.begin) == (80e6, 80e6)


@pytest.mark.parametrize(
    ("milliseconds", "why"),
    [
        ([5] * 11, "all alike"),
        ([5, 5, 5, 80, 5, 5, 5, 5, 5, 5, 5], "one slow fetch may be an epoch's first"),
        ([5, 5, 7, 9, 5, 12, 5, 14, 5, 5, 5], "none of three times the median"),
        ([0.01, 0.01, 0.3, 0.01, 0.01, 0.2, 0.01, 0.01], "a queue's own times"),
    ],
)
def test_even_fetches_are_not(tmp_path, milliseconds, why):
    assert uneven_fetches(fetched(tmp_path, milliseconds)).value == 0, why


def test_workers_that_are_too_few_deliver_in_bursts_and_that_is_not_uneven(tmp_path):
    burst = [40, 0.1, 0.1, 0.1]  # four workers: one long wait, then three batches that are ready
    assert uneven_fetches(fetched(tmp_path, burst * 5, SEVERAL)).value == 0
    uneven_rounds = (burst + [0.1]) + burst * 2 + (burst + [0.1]) + burst
    assert uneven_fetches(fetched(tmp_path, uneven_rounds, SEVERAL)).value == 0
    irregular = [0.1] * 3 + [40] + [0.1] * 9 + [40] + [0.1] + [40] + [0.1] * 6 + [40] + [0.1]
    assert uneven_fetches(fetched(tmp_path, irregular, SEVERAL)).value > 0.9


def test_the_example_of_a_wait_is_the_fetch_and_not_what_follows_it(tmp_path):
    trace = drawn_trace("workers #####...............\npython  .....#####..........\ngpu     ..........aabbccddee")
    recording = Recording(trace, find_steps(trace))
    idle = loader_idle(recording)
    assert idle.value > 0
    assert idle.end - idle.begin == pytest.approx(idle.value, rel=0.1)


def test_batches_without_a_loader_are_told_apart_from_no_batches(tmp_path):
    """0.6 % "waiting for data" stood beside "no DataLoader iteration was recorded"."""
    none = Recording(trace := drawn_trace("step aaaabbbb\ngpu  .##..##."), find_steps(trace))
    assert "only" not in batches_seen(none).because
    trace = drawn_trace("step aaaaabbbbb\nop   ##...##...\nh2d  ...#....#.\ngpu  ....a....a", 1000)
    made = Recording(trace, find_steps(trace))
    assert made.account.share(Regime.INPUT) > 0
    assert "only some code" in batches_seen(made).because
    verdict = RULE.judge(Measures(made))
    assert verdict.status == "fires" or "only some code" in verdict.missing


def test_too_few_fetches_give_no_measure(tmp_path):
    assert isinstance(uneven_fetches(fetched(tmp_path, [5, 80, 5, 80])), Missing)
    without = measured(healthy(1).but(loader=""))
    assert all(
        isinstance(measure(without), Missing) for measure in (usual_fetch, slowest_fetch, uneven_fetches, loader_reads)
    )


def test_the_part_of_a_batch_that_is_read_is_seen_in_frames():
    files = PROBLEMS["a loader that reads files"].make(1)
    assert loader_reads(measured(files)).value == pytest.approx(0.8, abs=0.02)
    assert loader_reads(measured(files.but(reading=0.0))).value == 0
    assert "with_stack" in loader_reads(measured(files.but(stacks=False))).because


def test_what_a_worker_process_sent_is_no_file(tmp_path):
    read, received = "<built-in function read>", "multiprocessing/connection.py(390): _recv"
    assert loader_reads(fetched(tmp_path, [50] * 6, SEVERAL, [read])).value == pytest.approx(0.5)
    assert loader_reads(fetched(tmp_path, [50] * 6, SEVERAL, [received, read])).value == 0


FEW_WORKERS = f"""
    step    {"".join(letter * 10 for letter in "abcdef")}
    workers {"######...." * 6}
    gpu     {"......aabb" * 6}
"""


@pytest.mark.parametrize(
    ("context", "advised"),
    [
        ({}, "num_workers=3 * previous,"),
        ({"cores": 16}, "num_workers=min(3 * previous, 16),"),
        ({"cores": 16, "workers": 2}, "num_workers=6,"),
        ({"cores": 4, "workers": 2}, "num_workers=4,"),
    ],
)
def test_no_more_workers_are_advised_than_the_job_has_cores(tmp_path, context, advised):
    path = tmp_path / "few.pt.trace.json"
    path.write_text(json.dumps(drawn(FEW_WORKERS, 1000, tb_bottleneck={"context": context})))
    report = diagnose(str(path))
    finding = report.findings[0]
    assert finding.cause == "too_few_workers"
    assert advised in finding.fix.code


NO_WORKERS = f"""
    step    {"".join(letter * 10 for letter in "abcdef")}
    loader  {"########.." * 6}
    gpu     {"........ab" * 6}
"""


@pytest.mark.parametrize(("context", "advised"), [({"cores": 16}, 4), ({"cores": 2}, 2)])
def test_no_more_first_workers_are_advised_than_the_job_has_cores(tmp_path, context, advised):
    path = tmp_path / "none.pt.trace.json"
    path.write_text(json.dumps(drawn(NO_WORKERS, 1000, tb_bottleneck={"context": context})))
    finding = diagnose(str(path)).findings[0]
    assert finding.cause == "loader_in_main_process"
    assert f"num_workers={advised}," in finding.fix.code


@pytest.mark.parametrize(
    ("system", "guard"), [("Windows", True), ("Linux", False), (None, False), (["Windows"], False)]
)
def test_code_that_starts_workers_is_guarded_on_windows(tmp_path, system, guard):
    path = tmp_path / "few.pt.trace.json"
    context = {"cores": 8, "workers": 1, "os": system}
    path.write_text(json.dumps(drawn(FEW_WORKERS, 1000, tb_bottleneck={"context": context})))
    finding = diagnose(str(path)).findings[0]
    first, *rest = finding.fix.code.splitlines()
    assert first.startswith('if __name__ == "__main__":') == guard
    assert all(line.startswith("    ") for line in rest) == guard or not rest


def test_a_worker_for_each_core_is_advised_to_use_the_gpu_instead(tmp_path):
    """Twice the workers were advised with two workers on two cores."""
    path = tmp_path / "full.pt.trace.json"
    context = {"cores": 2, "workers": 2, "persistent_workers": False, "worker_start": "spawn", "os": "Windows"}
    path.write_text(json.dumps(drawn(FEW_WORKERS, 1000, tb_bottleneck={"context": context})))
    finding = diagnose(str(path)).findings[0]
    assert finding.cause == "cores_limit_workers"
    assert "num_workers" not in finding.fix.code
    assert "DALI" in finding.fix.code
    said = {line.label: (line.text, line.compared_with) for line in finding.evidence}
    assert said["persistent_workers"][0] == "False"
    assert said["Start method of the workers"][0] == "spawn"
    assert "__main__" in said["Operating system"][1]


def test_the_workers_are_counted_by_the_threads_that_send_them_indices(tmp_path):
    """One thread per worker. Without the context, min(2 * previous, 2) workers were advised although there were two."""
    path = tmp_path / "full.pt.trace.json"
    whole = drawn(FEW_WORKERS, 1000, tb_bottleneck={"context": {"cores": 2}}, with_stack=1)
    row = {"ph": "X", "cat": "python_function", "name": "multiprocessing/queues.py(231): _feed", "pid": 100}
    whole["traceEvents"] += [row | {"tid": tid, "ts": 0, "dur": 60_000} for tid in (300, 301)]
    path.write_text(json.dumps(whole))
    finding = diagnose(str(path)).findings[0]
    assert finding.cause == "cores_limit_workers"
    assert "num_workers" not in finding.fix.code
    assert finding.speedup.basis == "replay"


OWN_LOADER = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      .....###.......###.......###.......###..
    gpu     .....aaa.......bbb.......ccc.......ddd..
"""


@pytest.mark.parametrize("name", ["data_loading", "## load_batch ##", "get batch", "[Loop].train_dataloader_next"])
def test_a_loader_that_is_not_torchs_is_known_by_its_block(tmp_path, name):
    whole, path = drawn(OWN_LOADER, 1000), tmp_path / "own.pt.trace.json"
    row = {"ph": "X", "cat": "user_annotation", "name": name, "pid": 100, "tid": 100, "dur": 4900}
    whole["traceEvents"] += [row | {"ts": 10_000 * n} for n in range(4)]
    kernels = [event for event in whole["traceEvents"] if event["cat"] == "kernel"]
    whole["traceEvents"] += [kernel | {"dur": 5, "tid": 9} for kernel in kernels]
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    assert report.verdict.regime == "input"
    assert report.findings[0].cause == "batches_in_the_loop"
    assert report.findings[0].evidence[0].text == name


def causes_of(tmp_path, drawing, unit_us=1000.0):
    path = tmp_path / "f.pt.trace.json"
    path.write_text(json.dumps(drawn(drawing, unit_us)))
    report = diagnose(str(path))
    return {finding.cause: finding for finding in report.findings}


def test_few_late_batches_of_workers_do_not_advise_more_workers(tmp_path):
    """Three of four fetches are long: too few to know whether the workers are too slow."""
    few = causes_of(
        tmp_path,
        """
        step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
        workers #####.....#####.....#####.....#####.....
        gpu     .....##ab#.....##ab#.....##ab#.....##ab#
        """,
    )
    assert "few_fetches" in few
    assert few["few_fetches"].speedup.basis == "bound"
    assert "too_few_workers" not in few
    assert "num_workers" not in few["few_fetches"].fix.code


@pytest.mark.parametrize(("milliseconds", "part"), [([0.1, 80, 0.1, 0.1], 0), ([40, 40, 0.1, 40], 1)])
def test_a_wait_for_one_batch_is_not_known_to_recur_and_for_several_it_is(tmp_path, milliseconds, part):
    recording = fetched(tmp_path, milliseconds, SEVERAL)
    assert waiting_fetches(recording).value == sum(length > 1 for length in milliseconds)
    judgement = RULE.judge(Measures(recording))
    assert judgement.causes[0].name == "few_fetches"
    assert judgement.recoverable == pytest.approx(part * judgement.share)
    assert judgement.causes[0].certain == bool(part)
    assert judgement.doubtful == pytest.approx((1 - part) * judgement.share), "it still names the run"


def test_the_first_batch_of_workers_is_their_start(tmp_path):
    """One fetch, which ends before the first kernel, in a recording without steps."""
    found = causes_of(
        tmp_path,
        """
        workers ####################....................
        gpu     ....................#.#a..##.#..#a#ab.##
        """,
    )
    first = found["first_batch"]
    assert first.speedup.basis == "none"
    assert "too_few_workers" not in found
    assert "persistent_workers=True" in first.fix.code


def test_a_late_fetch_after_the_first_kernel_is_not_the_start(tmp_path):
    found = causes_of(
        tmp_path,
        """
        workers ....####################................
        gpu     #.#.....................#.#a..##ab..#.ab
        """,
    )
    assert "few_fetches" in found
