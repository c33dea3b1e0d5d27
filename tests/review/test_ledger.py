"""Tests of the ledger: predicted gains next to measured ones, misses first."""

import pytest

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.review.ledger import Fix, fixes_of, ledger
from tb_bottleneck.review.notes import Action, Note
from tb_bottleneck.review.trial_notes import trial_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.review_pb2 import Gain


def report(step_ns, gains=(), plan=()):
    """Returns a report with equal steps. `gains` are (cause, expected, low, high); `plan` is (cause, total)."""
    window = pb.Window(steps=6, step_ns=pb.Spread(median=step_ns, mean=step_ns), step_times_ns=[step_ns] * 6)
    return pb.Report(
        evidence_source="trace",
        health=pb.Health(status="ok"),
        window=window,
        verdict=pb.Verdict(regime="input"),
        account=[pb.AccountRow(regime=each, ns_per_step=step_ns if each == "input" else 0) for each in REGIMES],
        findings=[
            pb.Finding(cause=cause, speedup=pb.Speedup(expected=expected, low=low, high=high, basis="replay"))
            for cause, expected, low, high in gains
        ],
        plan=[pb.PlanStep(cause=cause, speedup_total=total, low=total, high=total) for cause, total in plan],
    )


def rows(fixes, **reports):
    return list(ledger(fixes, reports.get).rows)


def fix(*causes, subject="slow", fixed_in="fast"):
    return Fix(subject, fixed_in, causes, "Ana")


def test_misses_come_first_the_largest_first():
    slow = report(100.0, [("a", 2, 1.8, 2.2), ("b", 4, 3, 5), ("c", 10, 9, 11)])
    found = rows([fix("a"), fix("b"), fix("c"), fix("d")], slow=slow, fast=report(50.0))
    assert [(row.causes[0], row.result) for row in found] == [
        ("c", "miss"),
        ("b", "miss"),
        ("a", "as_predicted"),
        ("d", "unknown"),
    ]
    assert [row.expected.speedup for row in found[:3]] == [10, 4, 2]
    assert {row.measured.speedup for row in found} == {2.0}
    assert "does not contain" in found[3].because


def test_the_means_of_whole_runs_are_compared_where_they_are_known():
    """The typical step does not show what comes in every tenth step only."""
    slow, fast = report(100.0, [("a", 2, 1.8, 2.2)]), report(100.0)
    slow.unprofiled.run_step_ns, fast.unprofiled.run_step_ns = 210.0, 100.0
    (row,) = rows([fix("a")], slow=slow, fast=fast)
    assert (row.result, row.measured.speedup) == ("as_predicted", 2.1)
    assert row.measured.low < 2.1 < row.measured.high


def test_a_finding_about_the_memory_has_no_gain():
    slow = report(100.0)
    slow.memory.findings.add(cause="rising_host_memory")
    (row,) = rows([fix("rising_host_memory")], slow=slow, fast=report(50.0))
    assert (row.result, row.because) == ("unknown", "A finding about the memory has no gain of time.")


def test_an_estimate_is_a_prediction_too():
    slow = report(100.0, [("a", 2, 1.3, 3)])
    slow.findings[0].speedup.basis = "estimate"
    (row,) = rows([fix("a")], slow=slow, fast=report(50.0))
    assert (row.result, row.expected.low) == ("as_predicted", 1.3)


def test_a_fix_that_makes_it_slower_than_predicted_is_a_miss():
    (row,) = rows([fix("a")], slow=report(100.0, [("a", 2, 1.8, 2.2)]), fast=report(110.0))
    assert (row.result, row.measured.speedup) == ("miss", pytest.approx(100 / 110))


def test_several_fixes_in_one_run_have_the_gain_that_was_simulated_for_them_together():
    slow = report(100.0, [("a", 2, 2, 2), ("b", 2, 2, 2)], [("a", 2.0), ("b", 2.5), ("c", 3.0)])
    found = rows([fix("a", "b"), fix(""), fix("a", "c")], slow=slow, fast=report(50.0))
    assert {tuple(row.causes): row.expected.speedup for row in found} == {("a", "b"): 2.5, ("",): 3.0, ("a", "c"): 0.0}
    assert "not simulated together" in found[-1].because


@pytest.mark.parametrize(
    ("slow", "fast", "because"),
    [
        (None, report(50.0), "no recording of slow any more"),
        (report(100.0, [("a", 2, 2, 2)]), pb.Report(), "no report with a verdict"),
        (report(100.0, [("a", -1, 2, float("nan"))]), report(50.0), "impossible"),
    ],
)
def test_what_cannot_be_compared_says_why(slow, fast, because):
    (row,) = rows([fix("a")], slow=slow, fast=fast)
    assert row.result == "unknown"
    assert because in row.because


def test_noise_above_the_steps_themselves_measures_no_gain():
    noisy = report(100.0, [("a", 2, 1.8, 2.2)])
    noisy.window.step_times_ns[:] = [1.0, 900.0, 2.0, 1_500.0, 5.0, 40.0]
    (row,) = rows([fix("a")], slow=noisy, fast=report(50.0))
    assert (row.result, row.HasField("measured")) == ("unknown", False)
    assert "vary too much" in row.because


def test_the_measured_gain_is_that_of_steps_without_the_profiler():
    slow, fast = report(100.0, [("a", 2, 1.8, 2.2)]), report(80.0)
    slow.unprofiled.step_ns, fast.unprofiled.step_ns = 90.0, 45.0
    (row,) = rows([fix("a")], slow=slow, fast=fast)
    assert (row.result, row.measured.speedup) == ("as_predicted", 2.0)


def trial(measured, *causes, subject="slow"):
    return Fix(
        subject, "try/1/after", causes, "try", Gain(speedup=measured, low=measured - 0.1, high=measured + 0.1), "w=4"
    )


def test_a_trial_counts_also_without_a_gain_and_without_the_runs():
    slow = report(100.0, [("a", 2, 1.8, 2.2)])
    found = rows([trial(1.0, "a"), trial(1.9, "a"), trial(1.5), trial(1.5, "a", subject="gone")], slow=slow)
    assert [(row.result, row.measured.speedup, row.change) for row in found] == [
        ("miss", 1.0, "w=4"),
        ("as_predicted", 1.9, "w=4"),
        ("unknown", 1.5, "w=4"),
        ("unknown", 1.5, "w=4"),
    ]
    assert [row.because for row in found[2:]] == [
        "No finding suggested this change.",
        "There is no recording of gone and try/1/after any more.",
    ]


def test_the_predictions_for_each_cause_are_counted():
    slow = report(100.0, [("a", 2, 1.8, 2.2), ("b", 4, 3, 5)])
    fixes = [trial(gain, "a") for gain in (1.9, 2.0, 2.3)] + [trial(3.0, "b"), trial(5.0), fix("a", "b")]
    found = ledger(fixes, {"slow": slow, "fast": report(50.0)}.get).causes
    assert [(each.cause, each.measured, each.inside) for each in found] == [("a", 3, 2), ("b", 1, 1)]
    assert [each.median_error for each in found] == [pytest.approx(0.05), 0.25]


@pytest.mark.parametrize(
    "text", ["1.9x (1.8 to 2.0)", "9" * 13 + "x (1 to 2) with a", "..x (1 to 2) with a", "0x (0 to 0) with a"]
)
def test_a_note_that_is_no_trial_is_left_out(text):
    assert fixes_of([Note("1", 1, "try", Action.TRIED, "slow", "a", text, "after")]) == []


def test_trials_stay_when_the_finding_is_opened_again():
    text = trial_text(1.98, 1.93, 2.03, "workers=4")
    notes = [
        Note("1", 1, "try", Action.TRIED, "slow", "a", text, "after"),
        Note("2", 2, "Ana", Action.REOPEN, "slow", "a"),
    ]
    (found,) = fixes_of(notes)
    assert (found.causes, found.measured.speedup, found.change) == (("a",), 1.98, "workers=4")


def test_a_fix_holds_until_a_later_note_replaces_it():
    def note(time, action, cause="", fixed_in=""):
        return Note(str(time), time, "Ana", action, "slow", cause, "", fixed_in)

    written = [
        note(0, Action.FIXED, "a", "fast"),
        note(1, Action.FIXED, "b", "fast"),
        note(2, Action.COMMENT, "a"),
        note(3, Action.FIXED, "c", "faster"),
        note(4, Action.REOPEN, "c"),
    ]
    assert fixes_of(written) == [fix("a", "b")]
    assert fixes_of([*written, note(5, Action.REOPEN)]) == []
    assert fixes_of([*written, note(5, Action.FIXED, "", "best")]) == [fix("", fixed_in="best")]
