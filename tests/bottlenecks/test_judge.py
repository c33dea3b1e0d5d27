"""A broken rule does not affect the others, and the conclusion follows the recoverable time."""

from dataclasses import replace

import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.bottlenecks import judge
from tb_bottleneck.bottlenecks.rule_types import BROKEN, CLEAR, FIRES, Cause, Judgement, Rule, Verdict
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.trace.steps import find_steps

WAITING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    gpu     ....######....######....######
"""


def measures_of(drawing: str) -> Measures:
    trace = drawn_trace(drawing)
    steps = find_steps(trace)
    assert steps is not None
    return Measures(Recording(trace, steps))


def test_a_failing_rule_is_broken_and_does_not_affect_the_others(monkeypatch, caplog):
    def breaks(measures):
        raise ZeroDivisionError("planted")

    rules = tuple(Rule("sync", breaks, 0.05) if rule.regime == "sync" else rule for rule in judge.RULES)
    monkeypatch.setattr(judge, "RULES", rules)
    verdicts = {verdict.regime: verdict.judgement.status for verdict in judge.judge_all(measures_of(WAITING))}
    assert verdicts["sync"] == BROKEN
    assert verdicts["input"] == FIRES
    assert len(verdicts) == len(rules)
    assert "planted" in caplog.text


def test_no_device_regime_is_named_where_most_kernels_are_unknown():
    facts = {"unknown_kernels": Measure(0.5, "share")}
    unknown = Verdict("unexplained", Judgement(CLEAR, 0.6), facts)
    verdicts = (verdict("compute", 0.1, 0.0), unknown, verdict("launch", 0.08, 0.04))
    assert judge.conclusion_of(verdicts) == judge.Conclusion("unexplained", 0.6, "none")
    idle = verdict("unexplained", 0.6, 0.0)
    assert judge.conclusion_of((verdicts[0], idle)).regime == "compute", "time without work says nothing of the kernels"
    assert judge.conclusion_of((*verdicts, verdict("input", 0.3, 0.3))).regime == "input"


def verdict(regime, share, recoverable):
    return Verdict(regime, Judgement(CLEAR, share, recoverable))


def test_the_answer_is_the_regime_with_most_to_recover():
    found = judge.conclusion_of((verdict("launch", 0.3, 0.15), verdict("input", 0.2, 0.2), verdict("compute", 0.5, 0)))
    assert (found.regime, found.severity) == ("input", "critical")


def test_waits_of_the_device_for_the_host_count_together():
    """After each wait, the host launches again: neither time can be saved without the other."""
    waits = verdict("launch", 0.2, 0.2), verdict("sync", 0.13, 0.13)
    assert judge.conclusion_of((*waits, verdict("memory", 0.47, 0.22))).regime == "launch"
    assert judge.conclusion_of((*waits, verdict("memory", 0.6, 0.35))).regime == "memory"
    assert judge.conclusion_of((waits[0], verdict("memory", 0.47, 0.22))).regime == "memory"


def test_where_nothing_is_worth_recovering_the_device_regime_that_bounds_the_run_is_named():
    found = judge.conclusion_of((verdict("launch", 0.18, 0.09), verdict("memory", 0.5, 0), verdict("compute", 0.3, 0)))
    assert (found.regime, found.share, found.severity) == ("memory", 0.5, "none")


def test_workers_that_are_behind_go_before_regimes_with_more_time():
    """Shorter copies only made the wait for the workers longer."""
    behind = Verdict("input", Judgement(FIRES, 0.27, 0.27, sets_pace=True))
    copies, work = verdict("transfer", 0.33, 0.33), verdict("compute", 0.4, 0)
    assert judge.conclusion_of((behind, copies, work)).regime == "input"
    assert judge.conclusion_of((replace(behind, judgement=Judgement(FIRES, 0.27, 0.27)), copies, work)).regime == (
        "transfer"
    )
    little = replace(behind, judgement=Judgement(FIRES, 0.06, 0.06, sets_pace=True))
    assert judge.conclusion_of((little, copies, work)).regime == "transfer", "too little to be worth it"


def test_a_start_up_that_takes_most_of_the_time_names_the_run_without_a_promise():
    once = Verdict("input", Judgement(FIRES, 0.6, 0.0, (cause(recurs=False),)))
    found = judge.conclusion_of((once, verdict("memory", 0.3, 0), verdict("launch", 0.1, 0.05)))
    assert (found.regime, found.severity) == ("input", "info")
    found = judge.conclusion_of((once, verdict("memory", 0.7, 0)))
    assert (found.regime, found.severity) == ("memory", "none")


def test_a_cause_that_may_not_be_removable_makes_no_run_healthy():
    doubtful = Verdict("compute", Judgement(FIRES, 0.6, 0.0, (cause(certain=False),)))
    found = judge.conclusion_of((doubtful, verdict("memory", 0.3, 0)))
    assert (found.regime, found.severity) == ("compute", "info")


def test_what_does_not_recur_is_not_recoverable_whatever_the_rule_says(monkeypatch):
    def promises(measures):
        return Judgement(FIRES, 0.6, 0.6, (cause(recurs=False),))

    rules = tuple(Rule("input", promises, 0.05) if rule.regime == "input" else rule for rule in judge.RULES)
    monkeypatch.setattr(judge, "RULES", rules)
    [found] = [one for one in judge.judge_all(measures_of(WAITING)) if one.regime == "input"]
    assert found.judgement.recoverable == 0


def cause(**changes):
    return Cause("slow_loader", 0.6, (), **changes)


def test_no_more_is_recoverable_than_the_limit_of_the_rule(monkeypatch):
    def promises(measures):
        return Judgement(FIRES, 0.6, 0.6, (cause(),))

    def most_recoverable(recording):
        return Measure(0.25, "share")

    planted = Rule("input", promises, 0.05, limit=most_recoverable)
    monkeypatch.setattr(judge, "RULES", tuple(planted if r.regime == "input" else r for r in judge.RULES))
    [found] = [one for one in judge.judge_all(measures_of(WAITING)) if one.regime == "input"]
    assert found.judgement.recoverable == 0.25


def test_causes_that_one_fix_removes_are_one_finding(monkeypatch):
    def judged(cause):
        return lambda measures: Judgement(FIRES, 0.2, 0.2, (cause,))

    wider = Cause("created_on_host", 0.2, (), also_fixes=frozenset({"blocking_copies"}))
    planted = {
        "input": Rule("input", judged(wider), 0.05),
        "transfer": Rule("transfer", judged(Cause("blocking_copies", 0.1, ())), 0.05),
    }
    monkeypatch.setattr(judge, "RULES", tuple(planted.get(rule.regime, rule) for rule in judge.RULES))

    verdicts = [verdict for verdict in judge.judge_all(measures_of(WAITING)) if verdict.regime in planted]

    causes = [(cause.name, cause.cost_share) for verdict in verdicts for cause in verdict.judgement.causes]
    assert causes == [("created_on_host", pytest.approx(0.3))]
    recoverable = {verdict.regime: verdict.judgement.recoverable for verdict in verdicts}
    assert recoverable == pytest.approx({"input": 0.3, "transfer": 0.1}), "the rest of the copies' time stays theirs"
