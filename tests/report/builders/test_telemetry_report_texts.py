"""The texts of telemetry reports."""

from tb_bottleneck.regime import Regime
from tb_bottleneck.report.builders.telemetry_report_texts import TelemetryTexts


def test_the_headline_about_the_latest_phase_states_its_length():
    headlines = [TelemetryTexts().latest_phase("The GPU waits.", seconds * 10**9) for seconds in (40, 119, 121, 7300)]
    assert headlines == [f"In the last {time}: The GPU waits." for time in ("40 s", "119 s", "2 min", "2 h")]


def test_a_device_that_works_is_not_called_unexplained_and_a_slowed_one_not_sound():
    texts = TelemetryTexts()
    assert texts.title(Regime.UNEXPLAINED, "none") == "At work"
    assert texts.title(Regime.COMPUTE, "critical").startswith(f"{Regime.COMPUTE.label}, ")
    assert texts.title(Regime.INPUT, "critical") == Regime.INPUT.label
