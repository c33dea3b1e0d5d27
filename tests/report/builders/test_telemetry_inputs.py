"""The texts of telemetry reports."""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.recoverable import UnknownTime
from tb_bottleneck.report.builders.telemetry_inputs import TelemetryTexts


def test_the_headline_about_the_latest_phase_states_its_length():
    headlines = [TelemetryTexts().latest_phase("The GPU waits.", seconds * 10**9) for seconds in (40, 119, 121, 7300)]
    assert headlines == [f"In the last {time}: The GPU waits." for time in ("40 s", "119 s", "2 min", "2 h")]


def test_time_without_a_known_problem_is_not_called_unexplained():
    labels = {
        TelemetryTexts(unknown).label(Regime.UNEXPLAINED)
        for unknown in (UnknownTime(), UnknownTime(at_work=0.3, unseen=0.2, idle=0.4))
    }
    assert labels == {"Unexplained"}
    assert TelemetryTexts(UnknownTime(at_work=0.9, idle=0.05)).label(Regime.UNEXPLAINED) == "Busy"
    assert TelemetryTexts(UnknownTime(unseen=0.9, idle=0.05)).label(Regime.UNEXPLAINED) == "Inside the step"
    assert TelemetryTexts(UnknownTime(unseen=0.9)).label(Regime.INPUT) == Regime.INPUT.label


def test_each_part_of_the_unexplained_time_is_told_with_its_share():
    meaning = TelemetryTexts(UnknownTime(at_work=0.6, idle=0.2)).meaning(Regime.UNEXPLAINED, "GPU")
    assert meaning.startswith("60 %: The GPU is busy.")
    assert "20 %: The GPU is idle" in meaning
    alone = TelemetryTexts(UnknownTime(at_work=0.6, idle=0.001)).meaning(Regime.UNEXPLAINED, "CPU")
    assert alone.startswith("The CPU is busy.")
    assert "idle" not in alone


def test_a_slowed_device_is_not_called_sound():
    texts = TelemetryTexts(UnknownTime(at_work=0.9))
    assert texts.title(Regime.UNEXPLAINED, "none") == "Busy"
    assert texts.title(Regime.UNEXPLAINED, "warning") == Regime.UNEXPLAINED.label
    assert texts.title(Regime.COMPUTE, "critical").startswith(f"{Regime.COMPUTE.label}, ")
    assert texts.title(Regime.INPUT, "critical") == Regime.INPUT.label
