"""What the headline names: the plan, or a cause that could not be simulated and is as large."""

import pytest

from tb_bottleneck.report.builders.action import lead_with_action
from tb_bottleneck.report.digest import Digest, plan_leads
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
    lead_with_action(found)
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
    lead_with_action(found)
    assert bool(found.verdict.action) == leads
