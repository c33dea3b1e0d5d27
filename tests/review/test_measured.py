"""A measured gain takes the place of the predicted one everywhere, and the next change leads if nothing was gained."""

import shutil
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.review.measured import with_measured_gains
from tb_bottleneck.review.notes import Action
from tb_bottleneck.review.store import NoteWriter
from tb_bottleneck.review.trial_notes import measured_gains, measured_lead, trial_gain, trial_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.review_pb2 import Review, ReviewState
from tb_bottleneck.text.brief import brief


def report() -> pb.Report:
    """Two findings about the loader, of which the first one leads, and a plan with both."""
    simulated = [pb.Speedup(expected=gain, low=gain - 0.2, high=gain + 0.2, basis="replay") for gain in (2.4, 1.15)]
    names = ("loader_in_main_process", "no_prefetch")
    return pb.Report(
        source="x",
        verdict=pb.Verdict(regime="input", severity="critical", action="Workers: about 2.4 times faster"),
        findings=[
            pb.Finding(cause=name, regime="input", title=name, fix=pb.Fix(action=f"Fix {name}"), speedup=gain)
            for name, gain in zip(names, simulated, strict=True)
        ],
        plan=[pb.PlanStep(cause=names[0], title="Workers", speedup_total=2.4, low=2.2, high=2.6)],
    )


def tried(gain: float, low: float, high: float) -> Review:
    text = trial_text(gain, low, high, "workers=2")
    return Review(states=[ReviewState(cause="loader_in_main_process", state="open", trial=text)])


def test_the_measured_gain_leads_and_says_what_was_predicted() -> None:
    found = with_measured_gains(report(), tried(1.16, 1.06, 1.28))
    said = found.verdict.action.replace("\N{MULTIPLICATION SIGN}", "x")
    assert said == "Fix loader_in_main_process: measured 1.2x faster (1.1 to 1.3), predicted 2.4x"
    assert found.verdict.severity == "warning", "neither gain is critical any more"
    assert not found.plan, "its fixes were simulated together with the one that was measured"
    assert "measured 1.16x (1.06 to 1.28) with workers=2, predicted 2.4" in brief(found)


def test_a_fix_that_gained_nothing_comes_last_and_the_next_one_leads() -> None:
    found = with_measured_gains(report(), tried(1.01, 0.97, 1.04))
    assert [finding.cause for finding in found.findings] == ["no_prefetch", "loader_in_main_process"]
    assert found.verdict.action.startswith("Fix no_prefetch: about 1.1")


@pytest.mark.parametrize("review", [None, Review(), Review(states=[ReviewState(cause="other", trial="1.2x (1 to 2)")])])
def test_without_a_measurement_nothing_changes(review: Review | None) -> None:
    before = report()
    assert with_measured_gains(before, review) is before


@pytest.mark.parametrize(
    "text", ["", "1.2x", "1.2.3x (1 to 2) with a", "0x (0 to 0) with a", "9" * 400 + "x (1 to 2) with a"]
)
def test_texts_that_are_no_gain(text: str) -> None:
    assert trial_gain(text) is None


def test_lists_show_the_measured_gain_of_the_leading_finding() -> None:
    gains, predicted = measured_gains(tried(1.16, 1.06, 1.28)), pb.Speedup(expected=2.4, basis="replay")
    lead = measured_lead(predicted, ("loader_in_main_process", "no_prefetch"), gains)
    assert lead is not None
    assert (lead.expected, lead.basis, lead.predicted) == (1.16, "trial", 2.4)
    assert measured_lead(predicted, ("no_prefetch",), gains) is predicted


RECORDED = Path(__file__).parent.parent.parent / "demo" / "recorded" / "fp32_matmul" / "slow"


def test_the_command_line_reads_the_review_above_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (trace,) = RECORDED.glob("*.pt.trace.json.gz")
    (tmp_path / "mine").mkdir()
    shutil.copy(trace, tmp_path / "mine")
    assert main(["diagnose", "--brief", "--no-cache", str(tmp_path / "mine" / trace.name)]) == 0
    before = capsys.readouterr().out
    cause = before.partition("[")[2].partition("]")[0]
    writer = NoteWriter(str(tmp_path), "tb-bottleneck try")
    writer.write(Action.TRIED, "mine", cause=cause, text=trial_text(1.31, 1.25, 1.36, "tf32"), fixed_in="try")
    writer.close()
    for path in (tmp_path, tmp_path / "mine" / trace.name):
        assert main(["diagnose", "--brief", "--no-cache", str(path)]) == 0
        said = capsys.readouterr().out
        assert "Gain: measured 1.31x" in said, said
