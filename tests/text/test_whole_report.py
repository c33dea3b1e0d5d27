"""The terminal shows every part of a report that the tab's diagnosis shows, in any width, and no name controls it."""

import pytest

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import render
from tb_bottleneck.text.terminal import Layout


def filled(hostile: str = "") -> pb.Report:
    """Returns a report in which each text says which field it is, with an addition."""

    def text(field: str) -> str:
        return f"<{field}>{hostile}"

    place = pb.Place(file=text("file"), line=4, function=text("function"), module=text("module"), share=0.9)
    place.chain.extend([text("chain"), text("chain end")])
    evidence = pb.Evidence(label=text("label"), value=3e6, unit="ns", compared_with=text("compared"))
    evidence.begin_ns, evidence.end_ns = 2e9 + 5e6, 2e9 + 9e6
    speedup = pb.Speedup(
        expected=1.5, low=1.2, high=1.7, basis="replay", assumes=text("assumes"), because=text("because of gain")
    )
    regimes = [("fires", "found"), ("abstains", "unknown"), ("broken", "failed"), ("clear", "clear")]
    return pb.Report(
        run=text("run"),
        source=text("source"),
        evidence_source="both",
        rank=1,
        world_size=4,
        device=pb.Device(name=text("device"), kind="cuda", count=2),
        health=pb.Health(
            status="degraded", reasons=[pb.HealthReason(code=text("code"), detail=text("detail"), fix=text("fix"))]
        ),
        window=pb.Window(steps=6, basis="profiler_step", step_ns=pb.Spread(mean=5e7), begin_ns=2e9, end_ns=2.3e9),
        account=[pb.AccountRow(regime="input", share=0.6, title=text("row"), meaning=text("meaning"))],
        verdict=pb.Verdict(
            regime="input",
            severity="critical",
            confidence="high",
            action=text("action"),
            headline=text("headline"),
            situation=text("situation"),
        ),
        regimes=[
            pb.RegimeVerdict(regime=name, status=status, title=text(f"title {name}"), because=text(f"why {name}"))
            for status, name in regimes
        ],
        findings=[
            pb.Finding(
                cause=text("cause"),
                title=text("finding"),
                cost_share=0.4,
                speedup=speedup,
                evidence=[evidence],
                where=[place],
                fix=pb.Fix(summary=text("summary"), code=text("code of the fix"), confirm=text("confirm")),
            )
        ],
        plan=[pb.PlanStep(title=text("step"), assumes=text("assumes of step"), speedup_total=1.5, low=1.2, high=1.7)],
        replay=pb.Replay(error=0.02, frozen_share=0.05, host=text("host")),
        disagreements=[pb.Disagreement(regime="sync", sentence=text("disagreement"))],
        phases=[pb.Phase(title=text(f"phase {each}"), begin_ns=each, end_ns=each + 1) for each in (0.0, 1.0)],
        unprofiled=pb.Unprofiled(sentence=text("unprofiled")),
    )


def texts_of(message) -> set[str]:
    """Returns the texts that the message contains, at any depth."""
    found = set()
    for _, value in message.ListFields():
        for each in [value] if not hasattr(value, "__len__") or isinstance(value, str) else value:
            if hasattr(each, "ListFields"):
                found |= texts_of(each)
            elif isinstance(each, str) and each.startswith("<"):
                found.add(each)
    return found


def test_every_text_of_the_report_is_shown():
    report = filled()
    said = " ".join(render(report).split())
    assert len(texts_of(report)) > 30
    left_out = {text for text in texts_of(report) if text not in said}
    assert left_out == {"<why clear>"}, "the tab has it behind a click"


def test_the_action_leads_then_the_cause_then_the_account():
    text = render(filled())
    order = ["<action>", "<headline>", "<row>", "<finding>", "<step>", "<why unknown>"]
    assert sorted(order, key=text.index) == order


def test_figures_of_the_tab_are_shown():
    said = " ".join(render(filled()).split())
    assert "one of 2 in use, rank 1 (of 4 ranks)" in said
    assert "Window: 300 ms, 6 profiled steps of 50.0 ms" in said
    assert "from trace and telemetry" in said
    assert "for example 5.00 ms into the window, for 4.00 ms" in said
    assert (
        "differs by 2.0 % from the recorded time. Waiting that the simulation cannot change takes 5.0 % of it" in said
    )


def test_without_a_finding_it_is_said():
    report = filled()
    del report.findings[:]
    assert "No known cause was found in this recording." in render(report)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal_or_than_prose_should_be(width):
    report = filled(" of a long name that needs more than one line")
    report.findings[0].fix.code = report.health.reasons[0].fix = "f(a, b)  # code is wrapped only where it stays code"
    lines = render(report, Layout(width)).splitlines()
    assert max(map(len, lines)) <= min(width, 100)


def test_no_text_of_a_recording_controls_the_terminal():
    text = render(filled("\x1b[2J\x9b\x07\u202e"), Layout(80))
    assert [line for line in text.splitlines() if not line.isprintable()] == []
