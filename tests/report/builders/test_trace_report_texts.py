"""The headline is that of the costliest cause, if this one has its own."""

import pytest

from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.bottlenecks.rule_types import FIRES, Cause, Judgement, Verdict
from tb_bottleneck.report.builders.evidence_source_texts import Context
from tb_bottleneck.report.builders.recording_description import Window
from tb_bottleneck.report.builders.trace_report_texts import TraceTexts

CONTEXT = Context("cuda", "NVIDIA H200", Window(6, "profiler_step", 0, 6, (1, 1, 1), ()))


@pytest.mark.parametrize(
    ("model", "optimizer", "headline"),
    [
        (0.25, 0.35, "The parameters are updated in several passes, "),
        (0.35, 0.25, "Memory bandwidth limits the GPU for 60 % of each step."),
    ],
)
def test_the_costliest_cause_gives_the_headline(model, optimizer, headline):
    causes = (Cause("unfused_pointwise", model, ()), Cause("optimizer_passes", optimizer, ()))
    facts = {"optimizer_pointwise": Measure(optimizer, "share", "window")}
    verdict = Verdict(Regime.MEMORY, Judgement(FIRES, 0.6, 0.3, causes), facts)
    answer = Conclusion(Regime.MEMORY, 0.6, "critical")
    assert TraceTexts().headline(answer, (verdict,), CONTEXT).startswith(headline)
