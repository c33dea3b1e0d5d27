"""The account of a whole run sums to its wall time, and each part is what was planted."""

import numpy as np
import pytest
from helpers.telemetry_rows import BEGIN, MS, packet, recording_of

from tb_bottleneck.bottlenecks.interruption.run_time import MAX_BINS, Part, recompiled_places, run_time
from tb_bottleneck.report.builders.telemetry_phases import run_time_of

STEPS = 200
NUMBERS = np.arange(STEPS)
STEP = np.full(STEPS, 10.0)
FIRST, SECOND = BEGIN // 1000, BEGIN // 1000 + 5_000


def planted(kind, **facts):
    """Returns the account of steps of 10 ms, every tenth of which takes 40 ms more, in a column of this name."""
    more = np.where(NUMBERS % 10 == 9, 40.0, 0.0)
    return run_time(recording_of(packet(STEP + more, **{kind: more}), facts))


@pytest.mark.parametrize(
    "part", [Part.EVALUATION, Part.CHECKPOINT, Part.LOGGING, Part.COLLECTION, Part.EPOCH_START], ids=str
)
def test_an_interruption_that_was_timed_is_its_own_part(part):
    account = planted(str(part))
    assert account.elapsed == pytest.approx((2000 + 800) * MS, rel=1e-6)
    assert account.share(part) == pytest.approx(800 / 2800, abs=1e-3)
    assert account.share(Part.TRAINING) == pytest.approx(2000 / 2800, abs=1e-3)


@pytest.mark.parametrize(("every", "part"), [(2, Part.CHECKPOINT), (5, Part.CHECKPOINT), (2, Part.PAUSE)])
def test_pauses_of_regular_long_steps_are_no_training(every, part):
    """Every second step took 50 ms more for its checkpoint, of which torch.save took 5: 2 % were pauses."""
    long = NUMBERS % every == every - 1
    saved = np.where(long if part is Part.CHECKPOINT else NUMBERS < 0, 5.0, 0.0)
    phases = {name: np.full(STEPS, 3.0) for name in ("forward", "backward", "optimizer")}
    account = run_time(recording_of(packet(STEP + 50.0 * long, checkpoint=saved, **phases)))
    pauses = 50.0 / every / (10.0 + 50.0 / every)
    assert account.share(part) == pytest.approx(pauses, abs=0.04)
    assert account.share(Part.TRAINING) == pytest.approx(1 - pauses, abs=0.04)


def test_the_parts_sum_to_the_wall_time_in_each_bin():
    more = np.where(NUMBERS % 7 == 3, 25.0, 0.0)
    written = packet(STEP * np.random.default_rng(1).uniform(0.5, 2, STEPS) + more, checkpoint=more)
    for second in range(4):
        series = written.series.add(name="process_memory", device="")
        series.unix_ns.append(BEGIN - (5 - second) * 1000 * MS)
        series.values.append(1e9)
    account = run_time(recording_of(written))
    assert sum(account.ns.values()) == pytest.approx(account.elapsed)
    assert account.bins.sum() == pytest.approx(account.elapsed)
    assert account.bins.sum(axis=0) == pytest.approx(account.elapsed / MAX_BINS, rel=1e-3)
    assert account.ns[Part.START] == pytest.approx(5000 * MS, rel=1e-3)


def test_compilations_come_from_the_log_and_may_be_before_the_first_step():
    log = {
        "compilations": [
            ["0/0", "f", "train.py", 3, (BEGIN - 300 * MS) / 1000, 200_000.0, ""],
            ["0/1", "f", "train.py", 3, (BEGIN + 500 * MS) / 1000, 100_000.0, "a guard failed"],
        ]
    }
    wall = STEP + np.where(NUMBERS == 50, 100.0, 0.0)
    written = packet(wall)
    series = written.series.add(name="process_memory", device="")
    series.unix_ns.append(BEGIN - 1000 * MS)
    series.values.append(1e9)
    account = run_time(recording_of(written, {"compile_log": log}))
    assert account.ns[Part.COMPILATION] == pytest.approx(300 * MS, rel=0.01)
    assert account.ns[Part.START] == pytest.approx(800 * MS, rel=0.01)


def test_warm_up_recordings_and_lost_rows_are_parts():
    wall = STEP + np.where(NUMBERS == 0, 500.0, 0.0) + np.where((NUMBERS >= 60) & (NUMBERS < 66), 90.0, 0.0)
    written = packet(wall, profiled=((NUMBERS >= 60) & (NUMBERS < 66)).astype(float))
    for row in range(100, STEPS):
        written.steps.end_unix_ns[row] += 700 * MS
    account = run_time(recording_of(written))
    assert account.ns[Part.WARM_UP] == pytest.approx(500 * MS, rel=0.02)
    assert account.ns[Part.RECORDING] == pytest.approx(540 * MS, rel=0.02)
    assert account.ns[Part.UNRECORDED] == pytest.approx(700 * MS, rel=0.02)


def test_a_run_that_has_not_ended_ends_with_its_last_step():
    written = packet(STEP)
    series = written.series.add(name="process_memory", device="")
    series.unix_ns.append(BEGIN + 60_000 * MS)
    series.values.append(1e9)
    assert run_time(recording_of(written, ended=False)).elapsed == pytest.approx(2000 * MS)


def test_the_report_has_the_parts_with_any_time():
    message = run_time_of(planted("checkpoint"))
    assert {part.kind for part in message.parts} == {"checkpoint", "training"}
    assert sum(part.share for part in message.parts) == pytest.approx(1)
    assert all(0 <= share <= 1 for part in message.parts for share in part.bins)
    assert run_time_of(None) is None
    assert run_time(recording_of(packet([]), ended=False)) is None


@pytest.mark.parametrize(
    ("calls", "line", "exact"),
    [
        ([["0/1", SECOND, "train.py", 37, "main"]], 37, True),
        ([], 3, False),
        ([["0/1", SECOND + 1, "train.py", 37, "main"]], 3, False),
        (
            [
                ["0/1", SECOND, "train.py", "37", "main"],
                ["0/0", FIRST, "train.py", 8, "main"],
                ["0", 1, "x", 1, "y"],
                5,
            ],
            3,
            False,
        ),
    ],
)
def test_the_call_that_makes_torch_compile_again_is_the_place(calls, line, exact):
    compilations = [
        ["0/0", "f", "train.py", 3, FIRST, 1_000.0, ""],
        ["0/1", "f", "train.py", 3, SECOND, 1_000.0, "a guard failed"],
    ]
    log = {"compilations": compilations, "calls": calls}
    (place,) = recompiled_places(recording_of(packet(STEP), {"compile_log": log}))
    assert (place.file, place.line, place.exact) == ("train.py", line, exact)
