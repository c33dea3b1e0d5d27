"""The energy of a step comes from the counter, otherwise from sampled power; goodput is the share of useful steps."""

import pytest
from helpers.simulated_telemetry import UUID, S, SimulatedPhase, simulate

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.measures.telemetry.efficiency import goodput, joules_per_step, telemetry_figures
from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.telemetry.telemetry import Telemetry

WATTS = 500.0


def recording_of(*phases, counter=None, without=()):
    """Returns a run of these phases; `counter` is the power that the energy counter shows, in W."""
    telemetry, messages = Telemetry(), simulate(phases, 0, None, without)
    if counter is not None:
        at = [time for m in messages if isinstance(m, Packet) for s in m.series[:1] for time in s.unix_ns]
        last = max(m.sequence for m in messages if isinstance(m, Packet))
        packet = Packet(sequence=last + 1)
        packet.series.add(
            name="energy_total", device=UUID, unix_ns=at, values=[1e6 + counter * (t - at[0]) / S for t in at]
        )
        messages.append(packet)
    telemetry.add(messages)
    return TelemetryRecording(telemetry)


STEADY = SimulatedPhase(seconds=60.0, readings={"power": WATTS})


def step_seconds(recording):
    return recording.windows.grid.width * len(recording.windows) / S / len(recording.steps)


def test_the_counter_is_preferred():
    recording = recording_of(STEADY, counter=300.0)
    found = joules_per_step(recording)
    assert found.value == pytest.approx(300.0 * step_seconds(recording), rel=0.05)
    assert found.text == "energy_counter"


def test_sampled_power_is_named_as_such():
    recording = recording_of(STEADY)
    found = joules_per_step(recording)
    assert found.value == pytest.approx(WATTS * step_seconds(recording), rel=0.05)
    assert found.text == "sampled_power"


@pytest.mark.parametrize("run", [{"without": ("power",)}, {"counter": 0.0, "without": ("power",)}])
def test_without_readings_there_is_no_energy(run):
    assert joules_per_step(recording_of(STEADY, **run)).text == "no_energy"


def test_goodput_without_and_with_pauses():
    steady = goodput(recording_of(STEADY)).value
    paused = goodput(recording_of(SimulatedPhase(seconds=60.0, pause_every=50, pause=2_000.0))).value
    assert steady == pytest.approx(0.92, abs=0.02)  # the first three steps take 2 s each
    steps_per_pause = 50 * 0.1 / (50 * 0.1 + 2.0)
    assert paused == pytest.approx(steps_per_pause * 60 / 66 + 0.01, abs=0.03)


def test_telemetry_never_claims_a_utilisation():
    found = telemetry_figures(recording_of(STEADY))
    assert {found[name].text for name in ("mfu", "hfu", "peak_flops")} == {"telemetry_only"}
    assert found["samples_per_step"].value == 32
