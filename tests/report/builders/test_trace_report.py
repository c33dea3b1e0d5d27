"""The one answer's headline is that of the dearest cause, where this one has words of its own."""

import pytest

from tb_bottleneck.measure import Measure
from tb_bottleneck.regimes.judge import Conclusion
from tb_bottleneck.regimes.rule import FIRES, Cause, Judgement, Verdict
from tb_bottleneck.report.builders.trace_report import empty_report, set_answer


@pytest.mark.parametrize(
    ("model", "optimizer", "said"),
    [
        (0.25, 0.35, "The optimizer updates the parameters one by one, "),
        (0.35, 0.25, "The GPU is at work: its memory bandwidth bounds 60 % of each step."),
    ],
)
def test_the_dearest_cause_has_the_word(model, optimizer, said):
    causes = (Cause("unfused_pointwise", model, ()), Cause("optimizer_passes", optimizer, ()))
    facts = {"optimizer_pointwise": Measure(optimizer, "share", "window")}
    verdict = Verdict("memory", Judgement(FIRES, 0.6, 0.3, causes), facts)
    report = empty_report(".", "t.json")
    set_answer(report, Conclusion("memory", 0.6, "critical"), (verdict,), "high")
    assert report.verdict.headline.startswith(said)
