"""What cures do together: findings whose gain comes only after another's, or is another's as well."""

from tb_bottleneck.replay.plan import WORTH_DOING
from tb_bottleneck.replay.scenarios.registry import SCENARIO_OF
from tb_bottleneck.report.rendering.figures import factor_text
from tb_bottleneck.schema import bottleneck_pb2 as pb

# A cure waits for another one if it saves this many times as much time behind it.
MUCH_MORE = 2.0


def note_of(report: pb.Report, finding: pb.Finding) -> str:
    """What the gain of one cure does not tell: how it goes with those of the plan. Empty where it tells all."""
    if finding.speedup.basis != "replay" or not report.plan:
        return ""
    place = _place(report, finding)
    alone = finding.speedup.expected
    if place is None:
        if alone < 1 + WORTH_DOING:
            return ""
        return f'"{report.plan[0].title}" frees this time too: once that is done, this gains nothing more.'
    if place == 0:
        return ""
    before, after = report.plan[place - 1], report.plan[place]
    saved = 1 / before.speedup_total - 1 / after.speedup_total  # of the step as it is, like what it saves alone
    if saved < MUCH_MORE * (1 - 1 / alone):
        return ""
    gain = factor_text(after.speedup_total / before.speedup_total)
    return f'By itself this gains little: other things hold the device up. After "{before.title}" it gains {gain}.'


def _place(report: pb.Report, finding: pb.Finding) -> int | None:
    """The step of the plan that cures a finding; several causes may have one cure."""
    cure = _cure(finding.cause)
    return next((place for place, step in enumerate(report.plan) if _cure(step.cause) == cure), None)


def _cure(cause: str) -> str:
    scenario = SCENARIO_OF.get(cause)
    return cause if scenario is None else scenario.name
