"""The phases of a run, drawn with one letter for ten seconds."""

import pytest
from helpers.simulated_telemetry import S, SimulatedPhase, simulate
from helpers.telemetry_files import context
from helpers.telemetry_problems import simulated_phase

from tb_bottleneck.attribution.telemetry import telemetry_recording
from tb_bottleneck.report.builders.telemetry_phases import _confirmed, phases_of
from tb_bottleneck.schema.telemetry_pb2 import Packet
from tb_bottleneck.telemetry.telemetry import Telemetry

T, MS = 1_700_000_000 * S, 1_000_000
LETTER_NS = 10 * S
LETTERS = {
    "input": "i",
    "launch": "l",
    "compute": "c",
    "gpu_unused": "g",
    "memory": "m",
    "unexplained": "?",
    "underfilled": "u",
}


def drawn(*phases: SimulatedPhase, seed: int = 0) -> str:
    """Returns one letter per ten seconds: the first of the regime, a capital for a warning or more."""
    telemetry = Telemetry()
    telemetry.add(simulate(phases, seed))
    line = ""
    for band in phases_of(telemetry_recording.TelemetryRecording(telemetry)):
        letter = LETTERS[band.regime]
        line += (letter.upper() if band.severity in ("critical", "warning") else letter) * round(
            (band.end - band.begin) / LETTER_NS
        )
    return line


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([simulated_phase("healthy")], "cccccccccccc"),
        (
            [simulated_phase("healthy"), simulated_phase("few_workers"), simulated_phase("healthy")],
            "ccccccccccccIIIIIIIIIIIIcccccccccccc",
        ),
        ([simulated_phase("healthy"), simulated_phase("hot")], "ccccccccccccCCCCCCCCCCCC"),
        ([simulated_phase("memory"), simulated_phase("launches", 60.0)], "mmmmmmmmmmmmLLLLLL"),
        ([simulated_phase("healthy"), simulated_phase("underfilled")], "ccccccccccccuuuuuuuuuuuu"),
        ([simulated_phase("on_cpu")], "GGGGGGGGGGGG"),
        # Twelve seconds are not a phase: a validation, a slow file.
        (
            [simulated_phase("healthy"), simulated_phase("few_workers", 9.0), simulated_phase("healthy")],
            "ccccccccccccccccccccccccc",
        ),
    ],
    ids=[
        "healthy",
        "few workers for a while",
        "hot",
        "two problems",
        "not filled",
        "on the CPU",
        "a moment is no phase",
    ],
)
def test_when_it_became_slow_and_why(phases, expected):
    found = drawn(*phases)
    assert abs(len(found) - len(expected)) <= 1
    differ = sum(a != b for a, b in zip(found, expected, strict=False))
    assert differ <= 2, f"\n{expected}\n{found}"
    assert _runs(found) == _runs(expected), f"\n{expected}\n{found}"


@pytest.mark.parametrize("seed", range(5))
def test_a_regime_at_the_threshold_does_not_flicker(seed):
    """Waits of about 10 % of the step, varying from window to window."""
    wavering = [simulated_phase("few_workers", 20.0, severity=0.09 + 0.02 * (at % 2)) for at in range(12)]
    assert len(_runs(drawn(*wavering, seed=seed))) <= 2


@pytest.mark.parametrize(
    ("windows", "confirmed"),
    [
        ("aaabaaa", "aaaaaaa"),  # a moment is no change
        ("aaabbaa", "aaabbaa"),
        ("aaabccc", "aaaaccc"),
        ("aaab", "aaaa"),  # not sure yet
        ("aaabb", "aaabb"),
        ("aaa.baa", "aaa.baa"),  # after a gap everything starts again
    ],
)
def test_a_change_counts_once_two_windows_confirm_it(windows, confirmed):
    owner = [None if letter == "." else (letter, True) for letter in windows]
    assert "".join("." if one is None else one[0] for one in _confirmed(owner)) == confirmed


def on_cpu(slow_in: str, pressure: float, threads: float) -> list[tuple[str, str]]:
    """Returns the phases of 600 steps of 50 ms on two cores; every tenth step takes ten times as long in `slow_in`."""
    packet = Packet(schema=1)
    names = ("loader_wait", "forward", "backward", "optimizer")
    columns: dict[str, list[float]] = {name: [] for name in names}
    now = float(T)
    for number in range(600):
        longer = 450.0 if number % 10 == 9 else 0.0
        times = {"loader_wait": 1.0, "forward": 15.0, "backward": 30.0, "optimizer": 3.0}
        if slow_in in times:
            times[slow_in] += longer
        now += (50.0 + longer) * MS
        packet.steps.number.append(number)
        packet.steps.end_unix_ns.append(now)
        packet.steps.wall_ns.append((50.0 + longer) * MS)
        for name in names:
            columns[name].append(times[name] * MS)
    for name, values in columns.items():
        packet.steps.columns.add(name=name, values=values)
    at = [T + one * S for one in range(int((now - T) / S))]
    cores = min(1.0 / threads, 1.0)  # the share of a core that one thread gets
    readings = {"cpu_pressure": pressure, "run_queue": 2 * threads, "cpu_usable_cores": 2.0, "process_cores": cores}
    for name, value in readings.items():
        packet.series.add(name=name, device="host", unix_ns=at, values=[value] * len(at))
    telemetry = Telemetry()
    telemetry.add([context({"device_kind": "cpu", "cores": 2, "torch_threads": 1}), packet])
    return [(band.regime, band.severity) for band in phases_of(telemetry_recording.TelemetryRecording(telemetry))]


def test_a_shared_cpu_is_contended_and_its_long_steps_are_no_interruptions():
    """Next to other processes a step may lose its core during the forward or the backward pass. This was reported as
    interruptions, as if the training saved something there."""
    assert on_cpu("backward", pressure=0.6, threads=2.5) == [("compute", "info")], (
        "constant contention has no known gain"
    )
    assert on_cpu("forward", pressure=0.01, threads=0.5) == [("unexplained", "none")]
    assert on_cpu("somewhere else", pressure=0.01, threads=0.5) == [("interruption", "critical")]


def _runs(line: str) -> str:
    """Replaces repeated letters of the line by one."""
    return "".join(letter for at, letter in enumerate(line) if at == 0 or line[at - 1] != letter)
