"""Tests of the short form of a report: what its headline names, and the notes on what its figures suffer from.

The headline names the plan, or a cause that could not be simulated and is as large.
"""

import pytest

from tb_bottleneck.report.builders.action import action_sentence, led_by_action
from tb_bottleneck.report.digest import Digest, health_notes, plan_leads
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report(basis: str, gain: float) -> pb.Report:
    speedup = pb.Speedup(expected=gain, low=1, high=gain, basis=basis)
    backend = pb.Finding(cause="slow_backend", regime="communication", speedup=speedup, fix=pb.Fix(action="Use NCCL"))
    step = pb.PlanStep(cause="small_kernels", title="Replay a graph", speedup_total=1.3, low=1.2, high=1.4)
    launch = pb.Finding(cause="small_kernels", regime="launch")
    verdict = pb.Verdict(regime="communication", severity="critical")
    return pb.Report(verdict=verdict, findings=[backend, launch], plan=[step])


@pytest.mark.parametrize(
    ("basis", "gain", "by_plan"),
    [("bound", 1.4, False), ("bound", 1.2, True), ("replay", 1.1, True), ("none", 1, True), ("estimate", 2, True)],
)
def test_a_cause_that_is_not_simulated_leads_if_it_is_as_large(basis, gain, by_plan):
    found = report(basis, gain)
    assert plan_leads(found) == by_plan
    found = led_by_action(found)
    assert found.findings[0].cause == ("small_kernels" if by_plan else "slow_backend")
    action = "Replay a graph" if by_plan else "Use NCCL"
    assert found.verdict.action.startswith(action)
    digest = Digest.of(found)
    assert digest.action == action
    assert digest.gain is not None
    assert digest.gain.expected == (1.3 if by_plan else gain)


@pytest.mark.parametrize(("gain", "leads"), [(1.04, False), (1.06, True)])
def test_a_fix_that_gains_next_to_nothing_leads_nowhere(gain, leads):
    """ "Write checkpoints less often: about 1.00 times faster" was the headline of a training."""
    found = report("replay", gain)
    found.plan[0].speedup_total = gain
    found = led_by_action(found)
    assert bool(found.verdict.action) == leads


def test_missing_lines_are_no_note_on_figures():
    reasons = [pb.HealthReason(code=code, detail=code.upper()) for code in ("truncated", "stacks_not_recorded")]
    assert health_notes(pb.Report(health=pb.Health(reasons=reasons))) == ["TRUNCATED"]


@pytest.mark.parametrize(
    ("unprofiled", "shown"),
    [
        (None, 90.0),
        (pb.Unprofiled(step_ns=60), 60.0),
        (pb.Unprofiled(step_ns=60, step_times_ns=[60, 60, 90]), 70.0),
        (pb.Unprofiled(step_ns=60, step_times_ns=[60, 60, 90], run_step_ns=65), 65.0),
    ],
)
def test_the_step_time_is_the_one_without_the_profiler(unprofiled, shown):
    window = pb.Window(steps=3, step_ns=pb.Spread(median=80, mean=90))
    assert Digest.of(pb.Report(window=window, unprofiled=unprofiled)).step_ns == shown


def test_it_refers_to_no_part_of_the_report():
    """A part of a message keeps all of it in memory: 8,000 reports would take 800 MB."""
    report = pb.Report(world_size=2, verdict={"title": "before"}, membership={"default_group": "before"})
    report.account.add(regime="before")
    report.findings.add(speedup=pb.Speedup(expected=2, basis="before"))
    digest = Digest.of(report)
    for part in (report.verdict, report.membership, report.account[0], report.findings[0].speedup):
        field = part.ListFields()[-1][0].name
        setattr(part, field, "after")
    parts = (digest.verdict, digest.membership, digest.account[0], digest.gain)
    assert all("before" in str(part) for part in parts)


def test_time_that_nothing_explains_is_not_called_lost():
    shares = {"input": 0.2, "communication": 0.1, "compute": 0.3, "unexplained": 0.4}
    report = pb.Report(account=[pb.AccountRow(regime=regime, share=share) for regime, share in shares.items()])
    assert Digest.of(report).lost_share == pytest.approx(0.3)
    assert Digest.of(pb.Report()).lost_share is None


def test_a_problem_with_the_memory_that_leads_has_no_gain_of_time():
    report = planned(("Log less often", 1.4))
    assert Digest.of(report).gain is not None
    report.verdict.memory_alert.leads = True
    assert Digest.of(report).gain is None


def planned(*fixes: tuple[str, float]) -> pb.Report:
    return pb.Report(plan=[pb.PlanStep(cause=title, title=title, speedup_total=gain) for title, gain in fixes])


def test_the_gain_of_several_fixes_is_not_named_as_that_of_the_first():
    two = Digest.of(planned(("Log less often", 1.4), ("Add workers", 1.9)))
    assert (two.action, two.gain.expected) == ("Log less often, and 1 more fix", 1.9)
    assert Digest.of(planned(("Log less often", 1.4))).action == "Log less often"


def test_lists_name_the_fix_of_the_headline():
    """The costliest finding may be one whose gain nothing shows; the headline names the first with a gain."""
    unknown = pb.Finding(cause="uneven_steps", regime="input", fix=pb.Fix(action="Look at it"))
    known = pb.Finding(cause="too_few_workers", regime="input", fix=pb.Fix(action="Add workers"))
    known.speedup.MergeFrom(pb.Speedup(expected=1.5, low=1.2, high=1.9, basis="replay"))
    report = pb.Report(verdict=pb.Verdict(regime="input", severity="warning"), findings=[unknown, known])
    assert action_sentence(report).startswith("Add workers: about 1.5")
    assert (Digest.of(report).action, Digest.of(report).gain.expected) == ("Add workers", 1.5)
